"""
Whether stalls are told that did not happen: for an hour, with a witness on each CPU.

A witness is a thread of the idle class that reads the clock without pause whenever nobody else
wants its CPU. A stall in whose midst it read the clock is false. Where the witness was away for
longer than the stall, because another thread ran, it cannot tell. Prints JSON; needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tracer.agent.agent import Agent
from tracer.config import Config
from tracer.model import Stall

MS = 1_000_000
_NOTABLE_NS = MS // 5
_EDGE_NS = MS // 4
"""So much of a stall's sure part, at either end, proves nothing."""

Gap = tuple[int, int]
"""CLOCK_MONOTONIC ns between which a witness did not read the clock."""


def witness(cpu: int) -> None:
    """Print every gap once it is over, for ever."""
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    last = time.monotonic_ns()
    while True:
        now = time.monotonic_ns()
        if now - last > _NOTABLE_NS:
            print(last, now, flush=True)
        last = now


@contextmanager
def witnesses(folder: Path) -> Iterator[Mapping[int, Path]]:
    """One on each CPU while the block runs; their gaps are in the files."""
    files = {cpu: folder / f"gaps.{cpu}" for cpu in sorted(os.sched_getaffinity(0))}
    started = []
    for cpu, path in files.items():
        command = [sys.executable, "-m", "bench.quiet", "--witness", str(cpu)]
        with path.open("w") as file:
            started.append(subprocess.Popen(command, stdout=file))
    try:
        yield files
    finally:
        for each in started:
            each.terminate()
            each.wait()


def told(seconds: float, probe_hz: int) -> list[Stall]:
    """All stalls that the agent tells of meanwhile."""
    found: list[Stall] = []
    ends = time.monotonic() + seconds
    with Agent(Config(stall_probe_hz=probe_hz)) as agent:
        seen = 0

        def every_second() -> None:
            nonlocal seen
            stalls = agent.totals.stalls
            found.extend(stalls.since(seen))
            seen = stalls.number
            if sys.stderr.isatty():
                left = ends - time.monotonic()
                print(f"quiet: {len(found)} stalls, {left:.0f} s left  ", end="\r", file=sys.stderr)

        agent.run(lambda: time.monotonic() > ends, every_second)
        every_second()
    return found


def gaps(file: Path) -> list[Gap]:
    pairs = (line.split() for line in file.read_text().splitlines())
    return [(int(pair[0]), int(pair[1])) for pair in pairs if len(pair) == 2]


def testimony(stall: Stall, gaps_of: Mapping[int, Sequence[Gap]]) -> str:
    """``false`` when a witness on one of its CPUs ran meanwhile, ``true``, or ``unknown``."""
    sure_ns = stall.begin_ns + (stall.uncertain_ns or 0) + _EDGE_NS, stall.end_ns - _EDGE_NS
    longest_ns = stall.end_ns - stall.begin_ns + (stall.uncertain_ns or 0) + 2 * MS
    seen = [_around(gaps_of.get(cpu, ()), *sure_ns) for cpu in stall.cpus]
    if any(gap is None for gap in seen):
        return "false"
    return "true" if all(gap and gap[1] - gap[0] < longest_ns for gap in seen) else "unknown"


def _around(all_gaps: Sequence[Gap], begin_ns: int, end_ns: int) -> Gap | None:
    """The gap that has all of that time in it."""
    at = bisect_right(all_gaps, begin_ns, key=lambda gap: gap[0]) - 1
    return all_gaps[at] if at >= 0 and all_gaps[at][1] >= end_ns else None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.quiet", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--probe-hz", type=int, default=0, help="as stall_probe_hz; default 0")
    parser.add_argument("--witness", type=int, metavar="CPU", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.witness is not None:
        witness(asked.witness)
    with TemporaryDirectory(prefix="tailtrace-quiet-") as folder:
        with witnesses(Path(folder)) as files:
            stalls = told(asked.seconds, asked.probe_hz)
            time.sleep(1)  # a gap is written when it is over
        gaps_of = {cpu: gaps(file) for cpu, file in files.items()}
    said = Counter((testimony(stall, gaps_of), stall.scope) for stall in stalls)
    print(
        json.dumps(
            {
                "seconds": asked.seconds,
                "probe_hz": asked.probe_hz,
                "stalls": len(stalls),
                "said": [
                    {"witness": word, "scope": scope, "stalls": n}
                    for (word, scope), n in sorted(said.items())
                ],
                "false": [
                    {
                        "begin_ns": s.begin_ns,
                        "uncertain_ns": s.uncertain_ns,
                        "end_ns": s.end_ns,
                        "cpus": s.cpus,
                    }
                    for s in stalls
                    if testimony(s, gaps_of) == "false"
                ],
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
