"""Runs in the guest: reads CLOCK_MONOTONIC without pause on one CPU, reports where it jumped."""

import json
import os
import sys
import time
from pathlib import Path

NOTABLE_NS = 20_000_000


def gaps(cpu: int, seconds: float) -> list[tuple[int, int]]:
    """(start_ns, end_ns) of every span longer than NOTABLE_NS between two reads on that CPU."""
    os.sched_setaffinity(0, {cpu})
    found = []
    last = time.monotonic_ns()
    end = last + int(seconds * 1e9)
    while last < end:
        now = time.monotonic_ns()
        if now - last > NOTABLE_NS:
            found.append((last, now))
        last = now
    return found


if __name__ == "__main__":
    out, cpu, seconds = Path(os.environ["LAB_OUT"]), int(sys.argv[1]), float(sys.argv[2])
    (out / f"ready.{cpu}").touch()
    (out / f"gaps.{cpu}.json").write_text(json.dumps(gaps(cpu, seconds)))
