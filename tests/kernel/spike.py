"""
A node with a deschedule spike: an engine that marks its steps, and a hog on the same CPU.

    python -m tests.kernel.spike engine|hog CPU
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import stepmark


def engine() -> None:
    """A millisecond of work a step, some 400 steps a second."""
    while True:
        with stepmark.step("decode", tenants="chat"):
            sum(range(50_000))
        time.sleep(0.001)


def hog() -> None:
    """Takes the CPU from everybody for 30 ms, three times a second."""
    Path("/proc/self/comm").write_text("hog")
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    while True:
        end = time.monotonic() + 0.03
        while time.monotonic() < end:
            pass
        time.sleep(0.3)


if __name__ == "__main__":
    os.sched_setaffinity(0, {int(sys.argv[2])})
    {"engine": engine, "hog": hog}[sys.argv[1]]()
