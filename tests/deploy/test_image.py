"""
The image, run by a container runtime as the DaemonSet runs it. ``make image`` builds it first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from dashboards.__main__ import DASHBOARDS, RULES_FILE
from tests.deploy.agent import NAMESPACE
from tests.deploy.container import IMAGE, as_daemonset, podman, run, seccomp
from tests.deploy.manifests import container

LIST_BUILT = (
    "import os, importlib.util as u; "
    "print(*os.listdir(u.find_spec('dashboards').submodule_search_locations[0] + '/built'))"
)

pytestmark = pytest.mark.skipif(
    os.environ.get("IMAGE_TESTS") != "1", reason="make image builds what this tests"
)


@pytest.fixture
def options(configuration, tmp_path):
    return as_daemonset(seccomp(tmp_path, allows_bpf=True), configuration)


def test_the_agent_sees_the_steps_of_an_engine_outside(engine, options):
    traced = run(options, *container()["args"], "--duration=2", "--json")

    assert traced.code == 0
    assert traced.steps[NAMESPACE] > 0


def test_where_the_runtime_forbids_bpf_one_line_says_so(configuration, tmp_path):
    refused = run(as_daemonset(seccomp(tmp_path, allows_bpf=False), configuration), "check")

    assert refused.code == 3
    (line,) = refused.errors
    assert "capabilities suffice: a seccomp profile" in line


@pytest.fixture
def healthy(options) -> Iterator[str]:
    """The name of a container whose health check has passed."""
    name = f"tailtrace-test-{os.getpid()}"
    started = podman("run", "--detach", f"--name={name}", *options, IMAGE, "run", "--quiet")
    assert started.code == 0
    try:
        for _ in range(100):
            if podman("healthcheck", "run", name).code == 0:
                break
            time.sleep(0.1)
        else:
            pytest.fail(f"never healthy: {podman('logs', name)}")
        yield name
    finally:
        podman("stop", name)


def test_dashboards_and_rules_are_in_the_image(options):
    there = run([*options, "--entrypoint=python3"], "-c", LIST_BUILT)

    expected = {f"{module.dashboard().uid}.json" for module in DASHBOARDS} | {RULES_FILE}
    assert expected == set(there.output.split())


def test_the_health_check_follows_the_agent_which_serves_the_page(healthy):
    address = "http://127.0.0.1:9435/vendor/uPlot.iife.min.js"
    ask = f"from urllib.request import urlopen; print(urlopen('{address}').status)"

    assert podman("exec", healthy, "python3", "-c", ask).output == "200\n"


@pytest.mark.parametrize("tool", ["pip", "clang", "gcc", "make"])
def test_nothing_that_builds_is_in_the_image(options, tool):
    assert run([*options, "--entrypoint=which"], tool).code == 1


def test_nothing_of_the_build_is_in_its_layers(options):
    left = run([*options, "--entrypoint=ls"], "/src", "/run/secrets", "/etc/pip.conf")

    assert "" == left.output.strip()
