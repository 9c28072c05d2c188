"""
Whether stalls are told that did not happen: for an hour, with a witness on each CPU.

A witness reads the clock without pause whenever nobody else wants its CPU. A stall in whose midst
it read the clock is false. Where the witness was away for longer than the stall, because another
thread ran, it cannot tell. Prints JSON; needs root.
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

import numpy as np

from tracer.kernel.btf import Btf
from tracer.kernel.hooks import plan
from tracer.kernel.trace import KernelTrace
from tracer.model import Records, join_records

MS = 1_000_000
_AUTOGROUP = Path("/proc/self/autogroup")  # sched(7)
_NOTABLE_NS = MS // 5
_EDGE_NS = MS // 4
"""So much of a stall's sure part, at either end, proves nothing."""

Gap = tuple[int, int]
"""CLOCK_MONOTONIC ns between which a witness did not read the clock."""


def witness(cpu: int) -> None:
    """Print every gap once it is over, for ever."""
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    if _AUTOGROUP.exists():  # a session that is alone in its group has the weight of that
        _AUTOGROUP.write_text("19")
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
            each.kill()
            each.wait()


def told(seconds: float, probe_hz: int) -> Records:
    """All stalls of single CPUs (``struct stall``) that the kernel side tells of meanwhile."""
    found: list[Records] = []
    nobody = {"tenant_slots": 1, "outlier_ns": 1_000 * MS}
    with KernelTrace(plan(Btf.of_kernel()), **nobody, probe_hz=probe_hz) as kernel:
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            time.sleep(min(1, left))
            found.append(kernel.stalls())
            if sys.stderr.isatty():
                print(f"quiet: {left:.0f} s left  ", end="\r", file=sys.stderr)
    return join_records(found)


def gaps(file: Path) -> list[Gap]:
    pairs = (line.split() for line in file.read_text().splitlines())
    return [(int(pair[0]), int(pair[1])) for pair in pairs if len(pair) == 2]


def testimony(stall: np.void, seen: Sequence[Gap]) -> str:
    """
    Of a stall (``struct stall``), by the gaps of its CPU's witness: ``false`` when that ran
    meanwhile, ``true``, or ``unknown``.
    """
    alive_ns, due_ns, end_ns = (int(stall[name]) for name in ("alive_ns", "due_ns", "end_ns"))
    at = bisect_right(seen, due_ns + _EDGE_NS, key=lambda gap: gap[0]) - 1
    if at < 0 or seen[at][1] < end_ns - _EDGE_NS:
        return "false"
    longest_ns = end_ns - (alive_ns or due_ns) + 2 * MS
    return "true" if seen[at][1] - seen[at][0] < longest_ns else "unknown"


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
        seen = {cpu: gaps(file) for cpu, file in files.items()}
    said = [testimony(stall, seen[int(stall["cpu"])]) for stall in stalls]
    false = stalls[[word == "false" for word in said]]
    print(
        json.dumps(
            {
                "seconds": asked.seconds,
                "probe_hz": asked.probe_hz,
                "stalls": len(stalls),
                **Counter(said),
                "false_stalls": false[["cpu", "alive_ns", "due_ns", "end_ns"]].tolist(),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
