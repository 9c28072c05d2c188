"""What is counted besides time, in words."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.judge.words import EVENTS, clipped, compact, count
from tracer.ledger.summary import SlowStep, StepRow, Summary

_ROWS = 5  # what fits one screen
_OFTEN = 2  # times what is usual: less is not worth a word
_LEAST = {"fault_major": 1}
_LEAST_OF_OTHERS = 10


def section(summary: Summary) -> Iterator[str]:
    """A table of the kinds of steps that had most faults."""
    rows = [row for row in summary.rows if any(row.events.values())]
    if not rows:
        return
    form = "{:24} {:24} {:>9} {:>9}"
    yield "Page faults in steps"
    yield form.format("TENANT", "STEP", "MINOR", "MAJOR")
    for row in sorted(rows, key=_faults, reverse=True)[:_ROWS]:
        name = f"- {row.step}" if row.is_stage else row.step
        counts = (compact(round(row.events[f"fault_{kind}"])) for kind in ("minor", "major"))
        yield form.format(clipped(row.tenant, 24), clipped(name, 24), *counts)


def sentence(step: SlowStep) -> str:
    """What the step had more of than is usual; empty when there is nothing of that kind."""
    named = [
        f"{count(round(n), EVENTS[event])} instead of {round(step.usual_events[event]):,}"
        for event, n in step.events.items()
        if n >= _LEAST.get(event, _LEAST_OF_OTHERS) and n >= _OFTEN * step.usual_events[event]
    ]
    return f"It had {', '.join(named)}." if named else ""


def _faults(row: StepRow) -> float:
    return row.events["fault_minor"] + row.events["fault_major"]
