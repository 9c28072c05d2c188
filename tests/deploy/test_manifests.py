"""What ``kubectl apply -k`` would send: valid by Kubernetes' schemas, and consistent in itself."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil

import kubernetes_validate
import msgspec
import pytest
import yaml

from bench.maps import memory, of_object, scaled
from dashboards.__main__ import DASHBOARDS
from dashboards.alerts import Objectives, groups
from tests.deploy.manifests import DEPLOY, ROOT, assembled, by_kind, container
from tracer import config
from tracer.kernel.btf import object_path

VERSIONS = ["1.30", "1.37"]
"""The oldest that knows every field we use, and the newest of which there are schemas."""

CONFIGURATION = DEPLOY / "base/tailtrace.yaml"
MIB = 1 << 20
CONFIG_MAP_LIMIT = MIB
"""Of all its data: kubernetes.io/docs/concepts/configuration/configmap."""


@pytest.fixture(scope="module")
def base():
    return assembled(DEPLOY / "base")


@pytest.fixture(scope="module")
def generated():
    """The objects that ``deploy/monitoring/generate.py`` writes."""
    spec = importlib.util.spec_from_file_location("generate", DEPLOY / "monitoring/generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    return generate.objects([])


@pytest.fixture(scope="module")
def monitoring(generated, tmp_path_factory):
    """The overlay, put together in a copy: the tests leave no generated file in the checkout."""
    copy = tmp_path_factory.mktemp("deploy")
    for part in ("base", "monitoring"):
        shutil.copytree(DEPLOY / part, copy / part)
    (copy / "monitoring/generated.yaml").write_text(yaml.safe_dump_all(generated))
    return assembled(copy / "monitoring")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_of_kubernetes_has_its_schema(monitoring, version):
    ours = [each for each in monitoring if "coreos" not in each["apiVersion"]]
    assert len(ours) > 8

    for each in ours:
        kubernetes_validate.validate(each, version, strict=True)


def test_the_schemas_refuse_what_is_misspelled(base):
    wrong = by_kind(base, "DaemonSet")
    wrong["spec"]["template"]["spec"]["hostPid"] = True

    with pytest.raises(kubernetes_validate.ValidationError, match="hostPid"):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_the_agent_gets_the_configuration_as_one_that_it_accepts(base, tmp_path):
    (mounted,) = (
        volume["configMap"]["name"]
        for volume in by_kind(base, "DaemonSet")["spec"]["template"]["spec"]["volumes"]
        if "configMap" in volume
    )
    config_map = by_kind(base, "ConfigMap")
    file = tmp_path / "tailtrace.yaml"
    file.write_text(config_map["data"][file.name])

    assert mounted == config_map["metadata"]["name"]
    assert f"/etc/tailtrace/{file.name}" in container()["args"]
    assert ("0.0.0.0", port_of(container())) == config.load(file).address


def port_of(agent):
    (port,) = agent["ports"]
    return port["containerPort"]


def test_selectors_find_the_pods_of_the_daemonset(monitoring):
    labels = by_kind(monitoring, "DaemonSet")["spec"]["template"]["metadata"]["labels"]

    for kind, selector in [
        ("DaemonSet", "selector"),
        ("NetworkPolicy", "podSelector"),
        ("PodMonitor", "selector"),
    ]:
        wanted = by_kind(monitoring, kind)["spec"][selector]["matchLabels"]
        assert wanted.items() <= labels.items(), kind


def test_ports_have_the_name_by_which_they_are_called(monitoring):
    (port,) = container()["ports"]
    (scraped,) = by_kind(monitoring, "PodMonitor")["spec"]["podMetricsEndpoints"]
    (allowed,) = by_kind(monitoring, "NetworkPolicy")["spec"]["ingress"]

    assert port["name"] == scraped["port"]
    assert [{"port": port["name"]}] == allowed["ports"]
    for probe in ("readinessProbe", "livenessProbe"):
        assert port["name"] == container()[probe]["httpGet"]["port"]


def test_the_agent_may_not_become_more_than_it_is():
    security = container()["securityContext"]

    assert not security["privileged"]
    assert not security["allowPrivilegeEscalation"]
    assert security["readOnlyRootFilesystem"]
    assert ["ALL"] == security["capabilities"]["drop"]
    writable = [m["name"] for m in container()["volumeMounts"] if not m.get("readOnly")]
    assert ["history"] == writable


def test_the_account_may_read_pods_of_a_node_and_nothing_else(base):
    (rule,) = by_kind(base, "ClusterRole")["rules"]

    assert {"apiGroups": [""], "resources": ["nodes/pods"], "verbs": ["get"]} == rule


def test_the_agent_can_ask_the_kubelet_of_its_node(base):
    """What the configuration refers to is there, and nothing on the way forbids the request."""
    pod = by_kind(base, "DaemonSet")["spec"]["template"]["spec"]
    wanted = msgspec.convert(yaml.safe_load(CONFIGURATION.read_text())["kubelet"], config.Kubelet)
    variables = {each["name"]: each["valueFrom"]["fieldRef"] for each in container()["env"]}
    (egress,) = by_kind(base, "NetworkPolicy")["spec"]["egress"]

    assert {"fieldPath": "status.hostIP"} == variables[wanted.host.removeprefix("$")]
    assert {"fieldPath": "spec.nodeName"} == variables["NODE_NAME"]
    assert pod["automountServiceAccountToken"]
    assert [{"port": wanted.port}] == egress["ports"]


def test_monitoring_has_every_rule_and_dashboard(monitoring):
    boards = [each for each in monitoring if "grafana_dashboard" in each["metadata"]["labels"]]
    uids = {json.loads(text)["uid"] for each in boards for text in each["data"].values()}

    assert groups(Objectives()) == by_kind(monitoring, "PrometheusRule")["spec"]
    assert {module.dashboard().uid for module in DASHBOARDS} == uids
    assert all(len(json.dumps(each["data"])) < CONFIG_MAP_LIMIT for each in boards)


def test_the_kustomization_of_a_site_in_the_docs_works(tmp_path):
    shutil.copytree(DEPLOY / "base", tmp_path / "deploy/base")
    text = (ROOT / "docs/kubernetes.md").read_text()
    site = tmp_path / "site"
    site.mkdir()
    (site / "kustomization.yaml").write_text(
        re.search(r"```yaml\n(# kustomization.yaml\n.*?)```", text, re.S)[1]
    )
    (site / "tailtrace.yaml").write_text("listen: 0.0.0.0:9435\n")

    objects = assembled(site)

    pod = by_kind(objects, "DaemonSet")["spec"]["template"]["spec"]
    assert ["images.example/tailtrace:0.1.0"] == [each["image"] for each in pod["containers"]]
    assert "inference" == pod["nodeSelector"]["example.com/pool"]
    assert {"tailtrace.yaml": "listen: 0.0.0.0:9435\n"} == by_kind(objects, "ConfigMap")["data"]


def test_the_part_for_tls_in_the_docs_works(tmp_path):
    shutil.copytree(DEPLOY / "base", tmp_path / "base")
    text = (ROOT / "docs/kubernetes.md").read_text()
    part = re.search(r"```yaml\n# kustomization.yaml, the part for TLS\n(.*?)```", text, re.S)[1]
    (tmp_path / "kustomization.yaml").write_text(f"namespace: tailtrace\nresources: [base]\n{part}")
    for name in ("web.yaml", "tls.crt", "tls.key"):
        (tmp_path / name).write_text(name)

    objects = assembled(tmp_path)
    daemonset = by_kind(objects, "DaemonSet")
    kubernetes_validate.validate(daemonset, VERSIONS[-1], strict=True)

    pod = daemonset["spec"]["template"]["spec"]
    (agent,) = pod["containers"]
    (volume,) = (each for each in pod["volumes"] if "secret" in each)
    (mount,) = (each for each in agent["volumeMounts"] if each["name"] == volume["name"])
    assert by_kind(objects, "Secret")["metadata"]["name"] == volume["secret"]["secretName"]
    assert f"--web.config.file={mount['mountPath']}/web.yaml" in agent["args"]
    assert "HTTPS" == agent["readinessProbe"]["httpGet"]["scheme"]
    assert "HTTPS" == agent["livenessProbe"]["httpGet"]["scheme"]


def test_memory_has_room_for_the_maps_of_a_large_node():
    resources = container()["resources"]
    agent = 113e6  # resident with 100 tenants and 1,000 threads, without maps: docs/bench.md

    assert mebibytes(resources["requests"]) >= maps(tenants=100) + agent
    assert mebibytes(resources["limits"]) >= maps(tenants=1000) + 2 * agent


def test_the_arithmetic_of_memory_is_up_to_date():
    manifest = (DEPLOY / "base/daemonset.yaml").read_text()
    guide = " ".join((ROOT / "docs/kubernetes.md").read_text().split())
    (few,) = re.findall(r"# +([\d.]+)  and 113 for the agent itself", manifest)
    (told,) = re.findall(r"take (\d+) MB with 100 tenants, and (\d+) MB with 1,000", guide)

    computed = pytest.approx([maps(tenants=n) / 1e6 for n in (100, 100, 1000)], rel=0.05)
    assert computed == [float(few), *map(float, told)]


def mebibytes(amounts):
    return int(amounts["memory"].removesuffix("Mi")) * MIB


def maps(tenants):
    """Bytes of all maps at 256 CPUs and 10,000 traced threads, as the kernel takes them."""
    defined = scaled(of_object(object_path("tailtrace")), 256, 10_000, tenants)
    return sum(memory(each, 256) for each in defined)
