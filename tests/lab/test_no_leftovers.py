"""No emulator outlives the harness, whatever the state in which it dies."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lab import kernels, stall

pytestmark = pytest.mark.lab


def started_emulator(harness: psutil.Process) -> psutil.Process:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for child in harness.children(recursive=True):
            # virtme-ng asks the emulator for its version first; the real one has a kernel.
            if child.name().startswith("qemu-system") and "-kernel" in child.cmdline():
                return child
        time.sleep(0.1)
    pytest.fail("the harness started no emulator")


def start_harness(run: Path, *options: str, inside: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "lab", "run", "6.1", "--out", str(run), *options]
    return subprocess.Popen([*command, "--", "sh", "-c", inside], stderr=subprocess.DEVNULL)


def assert_nothing_survives(harness: subprocess.Popen[bytes], fatal: signal.Signals) -> None:
    everything = psutil.Process(harness.pid).children(recursive=True)
    harness.send_signal(fatal)
    harness.wait()

    _, alive = psutil.wait_procs(everything, timeout=10)
    assert alive == []


@pytest.mark.parametrize("fatal", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_emulator_dies_with_the_harness(fatal: signal.Signals, tmp_path: Path) -> None:
    kernels.fetch("6.1")
    harness = start_harness(tmp_path / "run", inside="sleep 600")
    started_emulator(psutil.Process(harness.pid))

    assert_nothing_survives(harness, fatal)


def test_stopped_emulator_dies_with_the_harness(tmp_path: Path) -> None:
    kernels.fetch("6.1")
    harness = start_harness(tmp_path / "run", inside="sleep 600")
    os.kill(started_emulator(psutil.Process(harness.pid)).pid, signal.SIGSTOP)

    assert_nothing_survives(harness, signal.SIGKILL)


def test_emulator_with_a_frozen_cpu_dies_with_the_harness(tmp_path: Path) -> None:
    kernels.fetch("6.1")
    options = ("--stall-cpu", "1", "--stall-ms", "600000")
    harness = start_harness(tmp_path / "run", *options, inside="touch $LAB_OUT/ready; sleep 600")
    emulator = started_emulator(psutil.Process(harness.pid))
    group = stall.cgroup_of_stalled_cpu(emulator)
    wait_until_frozen(group)

    assert_nothing_survives(harness, signal.SIGKILL)
    group.rmdir()
    group.parent.rmdir()


def wait_until_frozen(group: Path) -> None:
    events = group / "cgroup.events"
    deadline = time.monotonic() + 180
    while not (events.exists() and "frozen 1" in events.read_text()):
        assert time.monotonic() < deadline, f"no frozen CPU in {group}"
        time.sleep(0.1)
