"""
A pod whose agent cannot work is never ready, and says why: the DaemonSet's probe and its policy for
termination messages, applied to a real agent as the kubelet applies them.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.deploy.agent import TAILTRACE, only_with
from tests.deploy.manifests import capabilities, container
from tests.privileges import need_root
from tests.rules.prometheus_server import free_port

HIDING_BTF = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"']


@dataclass(frozen=True)
class Seen:
    ready: bool
    code: int | None
    """None while it runs."""

    message: str
    """What `kubectl describe pod` shows of a container that ended."""


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    need_root()
    file = tmp_path / "tailtrace.yaml"
    file.write_text(f"history: {{directory: ''}}\nlisten: 127.0.0.1:{free_port()}\n")
    return file


def seen_by_kubelet(launcher: Sequence[str], configuration: Path) -> Seen:
    """Probe until it is ready or has ended."""
    _, _, port = configuration.read_text().strip().rpartition(":")
    path = container()["readinessProbe"]["httpGet"]["path"]
    command = [*launcher, *TAILTRACE, "run", "--quiet", "--config", str(configuration)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as agent:
        deadline = time.monotonic() + 30
        while agent.poll() is None and time.monotonic() < deadline:
            if answers(f"http://127.0.0.1:{port}{path}") and agent.poll() is None:
                agent.terminate()
                return Seen(True, None, "")
            time.sleep(0.05)
        agent.terminate()
        assert container()["terminationMessagePolicy"] == "FallbackToLogsOnError"
        assert agent.stderr is not None
        return Seen(False, agent.wait(), agent.stderr.read())


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5) as reply:
            return bool(200 <= reply.status < 400)
    except (URLError, ConnectionError, TimeoutError):
        return False


def test_an_agent_with_all_it_needs_becomes_ready(configuration):
    assert seen_by_kubelet(only_with(capabilities()), configuration).ready


def test_without_a_capability_it_is_named(configuration):
    seen = seen_by_kubelet(only_with(set(capabilities()) - {"bpf"}), configuration)

    assert (False, 3) == (seen.ready, seen.code)
    assert "the agent lacks CAP_BPF: grant that" in only_line(seen)


def test_without_btf_that_is_said(configuration):
    seen = seen_by_kubelet([*HIDING_BTF, "sh"], configuration)

    assert (False, 3) == (seen.ready, seen.code)
    assert only_line(seen).startswith("tailtrace: this kernel has no BTF")


def test_a_port_in_use_is_named_with_the_way_to_find_its_holder(configuration):
    _, _, port = configuration.read_text().strip().rpartition(":")
    with socket.create_server(("127.0.0.1", int(port))):
        seen = seen_by_kubelet(only_with(capabilities()), configuration)

    assert (False, 2) == (seen.ready, seen.code)
    assert f"cannot serve metrics on 127.0.0.1:{port}: Address already in use" in only_line(seen)


def test_a_wrong_configuration_is_named(configuration):
    configuration.write_text("window_seconds: 4\nlisten: 127.0.0.1:1\n")
    seen = seen_by_kubelet(only_with(capabilities()), configuration)

    assert (False, 2) == (seen.ready, seen.code)
    assert only_line(seen).endswith("tailtrace.yaml: window_seconds is 4, must be 10 to 3600")


def only_line(seen: Seen) -> str:
    (line,) = seen.message.splitlines()
    return line
