"""
Runs in the guest: traces a thread that computes in steps, while its CPUs are taken away; then one
that a quota throttles instead. Leaves a recording of each, and what the doctor says to the first.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import stepmark
from tracer.agent.agent import Agent
from tracer.config import Config
from tracer.record.recorder import Recorder

CPU, AGENTS_CPU = 2, 0
STEP_NS, NOTABLE_NS = 10_000_000, 500_000  # a gap from there on is no work
PROBE_HZ = 500
QUOTA_S = 8
OUT = Path(os.environ.get("LAB_OUT", "."))
LOCAL = Path("/dev/shm")  # SQLite's log needs shared memory, which OUT has none of
GROUP = Path("/sys/fs/cgroup/throttled")


def compute() -> None:
    """Steps of 10 ms of work each, by looks at the clock that follow each other closely."""
    os.sched_setaffinity(0, {CPU})
    going = [True]
    signal.signal(signal.SIGTERM, lambda *_: going.clear())
    with stepmark.step("start", tenants="stalled"):
        pass  # it has a page from here on, so it is found at once
    print("ready", flush=True)
    input()
    while going:
        with stepmark.step("compute", tenants="stalled"):
            worked, last = 0, time.monotonic_ns()
            while worked < STEP_NS:
                now = time.monotonic_ns()
                worked += now - last if now - last < NOTABLE_NS else 0
                last = now


def record(name: str, enough: Callable[[int], bool], group: Path | None = None) -> None:
    """
    Trace while ``compute`` runs, until that is enough after so many seconds.

    The thread waits while the tracer attaches: emulated CPUs are not safe against code that is
    patched under them.
    """
    config, file = Config(stall_probe_hz=PROBE_HZ), LOCAL / name
    worker = subprocess.Popen(
        [sys.executable, __file__, "compute"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert worker.stdin and worker.stdout
    worker.stdout.readline()
    if group:
        (group / "cgroup.procs").write_text(str(worker.pid))
    with Agent(config) as agent, Recorder(file, agent.meta("")) as recorder:
        worker.stdin.write(b"go\n")
        worker.stdin.flush()
        seconds = 0

        def every_second() -> None:
            nonlocal seconds
            seconds += 1
            if seconds == 4:
                (OUT / f"{name}.ready").touch()
            if seconds % 10 == 0:
                recorder.write(agent.window())

        agent.run(lambda: enough(seconds), every_second)
        worker.terminate()
        worker.wait()
        recorder.write(agent.window())
    shutil.copy(file, OUT)


def throttled() -> Path:
    """A group whose threads may have half of a CPU."""
    (GROUP.parent / "cgroup.subtree_control").write_text("+cpu")
    GROUP.mkdir()
    (GROUP / "cpu.max").write_text("50000 100000")
    return GROUP


def examine() -> None:
    """What the doctor of this machine says to the tail of the first recording."""
    command = [sys.executable, "-m", "tracer.cli", "doctor", "--tail", str(LOCAL / "stalls.db")]
    said = subprocess.run(command, check=False, capture_output=True, text=True)
    (OUT / "doctor.txt").write_text(said.stdout + said.stderr)


def main() -> None:
    os.sched_setaffinity(0, {AGENTS_CPU})
    record("stalls.db", lambda _: (OUT / "enough").exists())
    examine()
    record("quota.db", lambda seconds: seconds > QUOTA_S, throttled())


if __name__ == "__main__":
    compute() if "compute" in sys.argv else main()
