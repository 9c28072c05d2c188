"""Runs in the guest: reads CLOCK_MONOTONIC without pause on one CPU, reports where it jumped."""

import json
import os
import sys
import time
from pathlib import Path

NOTABLE_NS = 1_000_000


LOOK_NS = 500_000_000


def gaps(cpu: int, enough: Path) -> list[tuple[int, int]]:
    """(start_ns, end_ns) of each span above NOTABLE_NS between two reads, until the file exists."""
    os.sched_setaffinity(0, {cpu})
    found = []
    last = looked = time.monotonic_ns()
    while True:
        now = time.monotonic_ns()
        if now - last > NOTABLE_NS:
            found.append((last, now))
        last = now
        if now - looked > LOOK_NS:
            if enough.exists():
                return found
            looked = last = time.monotonic_ns()


if __name__ == "__main__":
    out, cpu = Path(os.environ["LAB_OUT"]), int(sys.argv[1])
    (out / f"ready.{cpu}").touch()
    (out / f"gaps.{cpu}.json").write_text(json.dumps(gaps(cpu, out / "enough")))
