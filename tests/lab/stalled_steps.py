"""
Runs in the guest: traces a thread that computes in steps, while its CPUs are taken away; then one
that a quota throttles instead. Leaves a recording of each, and what the thread saw itself.
"""

from __future__ import annotations

import json
import os
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
STEP_NS, NOTABLE_NS = 10_000_000, 500_000
PROBE_HZ = 500
QUOTA_S = 8
OUT = Path(os.environ["LAB_OUT"])
GROUP = Path("/sys/fs/cgroup/throttled")


def compute() -> None:
    """Steps of 10 ms of work; what lies between two looks at the clock longer than it should."""
    os.sched_setaffinity(0, {CPU})
    going, gaps = [True], []
    signal.signal(signal.SIGTERM, lambda *_: going.clear())
    while going:
        with stepmark.step("compute", tenants="stalled"):
            worked, last = 0, time.monotonic_ns()
            while worked < STEP_NS:
                now = time.monotonic_ns()
                if now - last > NOTABLE_NS:
                    gaps.append((last, now))
                else:
                    worked += now - last
                last = now
    (OUT / "gaps.json").write_text(json.dumps(gaps))


def record(name: str, enough: Callable[[], bool], group: Path | None = None) -> None:
    """
    Trace while ``compute`` runs, from ``ready`` on until it is enough.

    The thread runs inside of the time in which the tracer is attached: emulated CPUs are not safe
    against code that is patched under them.
    """
    config = Config(stall_probe_hz=PROBE_HZ)
    with Agent(config) as agent, Recorder(OUT / name, agent.meta("")) as recorder:
        worker = subprocess.Popen([sys.executable, __file__, "compute"])
        if group:
            (group / "cgroup.procs").write_text(str(worker.pid))
        seconds = 0

        def every_second() -> None:
            nonlocal seconds
            seconds += 1
            if seconds == 4:
                (OUT / f"{name}.ready").touch()
            if seconds % 10 == 0:
                recorder.write(agent.window())

        agent.run(enough, every_second)
        worker.terminate()
        worker.wait()
        recorder.write(agent.window())


def throttled() -> Path:
    """A group whose threads may have half of a CPU."""
    (GROUP.parent / "cgroup.subtree_control").write_text("+cpu")
    GROUP.mkdir()
    (GROUP / "cpu.max").write_text("50000 100000")
    return GROUP


def main() -> None:
    os.sched_setaffinity(0, {AGENTS_CPU})
    record("stalls.db", (OUT / "enough").exists)
    end = time.monotonic() + QUOTA_S
    record("quota.db", lambda: time.monotonic() > end, throttled())


if __name__ == "__main__":
    compute() if "compute" in sys.argv else main()
