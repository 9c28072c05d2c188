"""
Measure what the tracer costs, beside its budgets and what its peers cost.

Prints the table; a run of everything writes it to docs/bench.md, too. Needs root, gcc, and the
peers of `make bench`; a peer that does not run here has a row that says why. A quiet machine and
ten minutes give figures worth keeping.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from bench import agent, hooks, maps, marks, memory, placement, slowdown, start
from bench.machine import Disturbance, Machine, machine
from bench.table import Section, as_dict, as_markdown
from tracer.errors import TailtraceError

MEASUREMENTS: dict[str, Callable[[int, Callable[[str], None]], Section]] = {
    "hooks": hooks.measure,
    "memory": memory.measure,
    "placement": placement.measure,
    "slowdown": slowdown.measure,
    "start": start.measure,
    "agent": agent.measure_busy,
    "crowd": agent.measure_crowd,
    "marks": marks.measure,
    "maps": maps.measure,
}
_DOCUMENT = Path(__file__).parents[1] / "docs" / "bench.md"


def document(here: Machine, disturbance: str, sections: Sequence[Section]) -> Iterator[str]:
    """The lines of docs/bench.md."""
    yield "# What the tracer costs"
    yield ""
    yield "<!-- Written by `python -m bench`; run it again instead of changing this. -->"
    yield ""
    yield f"Measured in one run on one machine: {here}. What else it had to do: {disturbance}."
    for section in sections:
        yield ""
        yield from as_markdown(section)


def _say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rounds, 1 to 1000")
    return int(text)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", choices=MEASUREMENTS, help="this measurement, and write no file")
    parser.add_argument("--rounds", type=_count, default=5, help="of every measurement; default 5")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _arguments(argv)
    names = [arguments.only] if arguments.only else list(MEASUREMENTS)
    here, disturbance = machine(), Disturbance()
    try:
        sections = [MEASUREMENTS[name](arguments.rounds, _say) for name in names]
    except TailtraceError as e:
        print(f"bench: {e}", file=sys.stderr)
        return e.exit_code
    text = "\n".join(document(here, str(disturbance), sections)) + "\n"
    if not arguments.only:
        _DOCUMENT.write_text(text)
    if arguments.json:
        found = {"machine": asdict(here), "disturbance": str(disturbance)}
        json.dump(found | {"sections": as_dict(sections)}, sys.stdout, indent=2)
        print()
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
