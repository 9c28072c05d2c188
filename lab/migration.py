"""
The demo of a migration: one workload, in a flat virtual machine that its host stops over and over,
then in one that shows two NUMA nodes and is left alone. Both are recorded, then compared; each
comparison must end as it has to.

examples:
  python -m lab.migration                # 15 minutes; its report is build/migration/verdict.html
  python -m lab.migration --seconds 40   # to try it: fails, as that is too short to judge by
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab import kernels, stall, vm
from lab.console import say, told
from tracer.errors import TailtraceError

KERNEL = "6.12"
SECONDS, SHORT_SECONDS = 330, 40
"""Of a recording. Less than five minutes are not judged."""

STALLS_S = (0.05, 0.47, 0.1, 0.2)
"""For how long all CPUs stop, one after the other and from the start again."""

_APART_S = 0.5
_PROGRESS_S = 60
_SLOW_S = 180.0
"""That a guest may take to begin or to end a recording."""

_CRITERIA = Path(__file__).with_name("migration.criteria.yaml")
_TAILTRACE = (sys.executable, "-m", "tracer.cli")
_EXIT_CODES = {"pass": 0, "fail": 1, "inconclusive": 3}


@dataclass(frozen=True)
class Comparison:
    what: str
    before: Path
    after: Path
    outcome: str
    """That it must have, as a whole and by its criterion on deschedules alone."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m lab.migration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=Path("build/migration"), help="a new directory")
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"of a recording [{SECONDS}]")
    options = parser.parse_args()
    short_and_after = {"short": SHORT_SECONDS, "after": options.seconds}
    try:
        flat = record("flat-vm", options.out, {"before": options.seconds}, stalls=True)
        two_node = record("two-node", options.out, short_and_after)
    except TailtraceError as error:
        return told(error)
    before, after, short = flat / "before.db", two_node / "after.db", two_node / "short.db"
    ended_well = [
        compare(Comparison("the migration", before, after, "pass"), options.out / "verdict.html"),
        compare(Comparison("the flat virtual machine with itself", before, before, "fail")),
        compare(Comparison("with too short a recording", before, short, "inconclusive")),
    ]
    return 0 if all(ended_well) else 1


def record(shape: str, out: Path, recordings: Mapping[str, int], stalls: bool = False) -> Path:
    """
    Record in a guest, one after the other, each for so many seconds.

    Returns the new directory in ``out`` that has what lab/migration.sh leaves.
    """
    run = out / shape
    kernel = kernels.fetch(KERNEL, say)
    say(f"{shape}: booting {kernel.release}")
    words = [word for name, seconds in recordings.items() for word in (name, str(seconds))]
    with vm.booted(kernel, shape, ["lab/migration.sh", *words], run.absolute()) as guest:
        for name, seconds in recordings.items():
            guest.wait_for_file(f"{name}.ready", _SLOW_S)
            with stall.ahead_of_other_load(guest):
                _while_recorded(guest, f"{shape}: {name}.db", seconds, stalls)
            guest.wait_for_file(f"{name}.over", _SLOW_S)
        say(f"{shape}: recorded")
        outcome = guest.wait()
    if outcome.status:
        raise TailtraceError(f"{shape}: exit code {outcome.status}: {outcome.stderr.strip()}")
    return run / "out"


def _while_recorded(guest: vm.Guest, what: str, seconds: int, stalls: bool) -> None:
    lengths, begin, next_word = itertools.cycle(STALLS_S), time.monotonic(), 0
    stopped_s: list[float] = []
    while (gone := time.monotonic() - begin) < seconds:
        if gone >= next_word:
            say(f"{what}: {gone:.0f} of {seconds} s")
            next_word += _PROGRESS_S
        time.sleep(_APART_S)
        if stalls:
            truth = stall.stall_all(guest, next(lengths))
            stopped_s.append((truth.end_ns - truth.start_ns) / 1e9)
    say(f"{what}: stopped {len(stopped_s)} times, for {sum(stopped_s):.1f} s in all")


def compare(comparison: Comparison, html: Path | None = None) -> bool:
    """Print the verdict. Returns whether it is the one that it must be, and says if it is not."""
    files = [str(comparison.before), str(comparison.after)]
    command = ["compare", *files, "--criteria", os.path.relpath(_CRITERIA)]
    with_page = [*command, "--html", str(html)] if html else command
    print(f"\n== {comparison.what}\n\n$ {shlex.join(['tailtrace', *with_page])}", flush=True)
    code = subprocess.run([*_TAILTRACE, *with_page], check=False).returncode
    say(f"exit code {code}")
    told = subprocess.run([*_TAILTRACE, *command, "--json"], check=False, stdout=subprocess.PIPE)
    of_deschedules = {
        finding["outcome"]
        for finding in json.loads(told.stdout)["findings"]
        if finding["figure"] == "deschedule_p999"
    }
    wanted = comparison.outcome
    if code == _EXIT_CODES[wanted] and of_deschedules == {wanted}:
        return True
    say(f"WRONG: it must be {wanted}, and by deschedules, which are {of_deschedules}")
    return False


if __name__ == "__main__":
    sys.exit(main())
