"""
Programs that something happens to, and that tell by themselves what it was.

``victims.py WHAT ...`` prints ``ready``, waits for a line, does its work, and prints one JSON value:
what it saw on its own clock.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

now_ns = time.monotonic_ns


def gaps_while_spinning(seconds: float, shortest_ns: int) -> list[tuple[int, int]]:
    """Intervals of at least ``shortest_ns`` in which this thread did not get to read the clock."""
    gaps, before = [], now_ns()
    end = before + int(seconds * 1e9)
    while before < end:
        now = now_ns()
        if now - before >= shortest_ns:
            gaps.append((before, now))
        before = now
    return gaps


def spin(cpu: str, seconds: str) -> Any:
    """Spin on a CPU; report its gaps."""
    os.sched_setaffinity(0, {int(cpu)})
    gaps = gaps_while_spinning(float(seconds), 20_000)
    return {"gaps": gaps, "seconds": sum(end - begin for begin, end in gaps) / 1e9}


def main() -> None:
    what, arguments = sys.argv[1], sys.argv[2:]
    print("ready", flush=True)
    sys.stdin.readline()
    json.dump(globals()[what](*arguments), sys.stdout)


if __name__ == "__main__":
    main()
