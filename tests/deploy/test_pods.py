"""
An engine in a pod: a control group as the kubelet makes it, namespaces and a user of its own, no
volume. It is found by its mark, and known by what its kubelet says.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.deploy.agent import with_capabilities
from tests.deploy.manifests import capabilities
from tests.kubelet.answers import CHAT, CHAT_UID, pod, pod_list
from tests.kubelet.server import TestKubelet, running_kubelet
from tracer.selftest.groups import controller_root

CONTAINER = "0123456789abcdef" * 4
OWN_NAMESPACES = ["unshare", "--mount", "--pid", "--fork", "--mount-proc"]


@pytest.fixture(scope="module")
def engine_in_pod(engine) -> Iterator[None]:
    """It needs root, as ``engine`` does, which checks that."""
    group = controller_root() / "kubepods" / "burstable" / f"pod{CHAT_UID}" / CONTAINER
    group.mkdir(parents=True)
    enter = f'echo $$ > {group}/cgroup.procs && exec "$@"'
    process = subprocess.Popen(
        ["sh", "-c", enter, "sh", *OWN_NAMESPACES, sys.executable, "-m", "tests.deploy.engine"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        end(group)
        process.wait()


def end(group: Path) -> None:
    """Kill who is in the group, and remove it with those above that were made for it."""
    for pid in (group / "cgroup.procs").read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    deadline = time.monotonic() + 10
    while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    for directory in [group, *group.parents[:3]]:
        directory.rmdir()


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[TestKubelet]:
    with running_kubelet(tmp_path) as kubelet:
        kubelet.body = pod_list(CHAT, pod("another", name="batch-0"))
        yield kubelet


@pytest.fixture
def by_label(kubelet: TestKubelet, tmp_path: Path) -> Path:
    """A configuration that traces what has a label, under the name of another one."""
    settings = kubelet.settings()
    rule = {
        "name": "chat",
        "match": {"marked": True, "namespace": "team-*", "labels": "tier=gold"},
        "tenant": "{namespace}/{pod}/{labels[app.kubernetes.io/name]}",
    }
    keys = ("host", "port", "ca_file", "token_file")
    content = {
        "listen": "127.0.0.1:0",
        "history": {"directory": ""},
        "kubelet": {key: str(getattr(settings, key)) for key in keys},
        "targets": [rule],
    }
    file = tmp_path / "tailtrace.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def test_its_steps_are_those_of_the_tenant_that_its_pod_names(engine_in_pod, by_label):
    traced = with_capabilities(
        capabilities(), "run", "--duration=2", "--json", "--config", by_label
    )

    assert traced.code == 0
    assert ["team-a/chat-0/chat"] == list(traced.steps)


def test_a_kubelet_that_refuses_is_told_once_and_counted(engine_in_pod, kubelet, by_label):
    kubelet.status, kubelet.body = 403, b"Forbidden (resource=nodes, subresource(s)=[pods])"
    traced = with_capabilities(
        capabilities(), "run", "--duration=2", "--json", "--config", by_label
    )

    assert traced.code == 0
    assert {} == traced.steps
    assert traced.report["lost"]["kubelet_refuses"] > 0
    (refused,) = (line for line in traced.errors if "kubelet" in line)
    assert f"refuses, status 403: {kubelet.body.decode()}; let the service account" in refused


def test_check_says_what_the_kubelet_says(engine, kubelet, by_label):
    def line(sign: str) -> bool:
        checked = with_capabilities(capabilities(), "check", "--config", by_label)
        return f"\n{sign}  pods " in checked.output

    assert line("ok")
    kubelet.status = 401
    assert line("--")
