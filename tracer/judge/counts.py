"""What is counted besides time, in words: faults, where pages come from, what moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tracer import catalog
from tracer.judge.words import EVENTS, clipped, compact, count, percent
from tracer.ledger.summary import SlowStep, StepRow, Summary

_ROWS = 4  # what fits one screen
_OFTEN = 2  # times what is usual: less is not worth a word
_LEAST = {"fault_major": 1}
_LEAST_OF_OTHERS = 10
_GOOD = frozenset({"alloc_local", "hint_local"})
"""More of these is no reason to be slow."""

_CAPABILITY = {event.name: event.capability for event in catalog.EVENTS}
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "MINOR": ("fault_minor",),
    "MAJOR": ("fault_major",),
    "REMOTE": ("alloc_remote", "alloc_local"),
    "HINTED": ("hint_remote", "hint_local"),
    "PULLED": ("migrate_balancer",),
    "MOVED": ("move_node",),
}
"""Of one event its number; of two the first one's part of both."""

_TITLE = "Memory of steps: REMOTE of new pages, HINTED of hint faults, PULLED by balancing, MOVED"


def section(summary: Summary) -> Iterator[str]:
    """A table of the kinds of steps that had most faults."""
    rows = [row for row in summary.rows if any(row.events.values())]
    if not rows:
        return
    form = "{:20} {:18} {:>9} {:>9} {:>8} {:>8} {:>9} {:>9}"
    yield _TITLE
    yield form.format("TENANT", "STEP", *_COLUMNS)
    for row in sorted(rows, key=_faults, reverse=True)[:_ROWS]:
        name = f"- {row.step}" if row.is_stage else row.step
        cells = (_cell(row, events, summary.cannot_tell) for events in _COLUMNS.values())
        yield form.format(clipped(row.tenant, 20), clipped(name, 18), *cells)


def sentence(step: SlowStep) -> str:
    """What the step had more of than is usual; empty when there is nothing of that kind."""
    named = [
        f"{count(round(n), EVENTS[event])} instead of {round(step.usual_events[event]):,}"
        for event, n in step.events.items()
        if event not in _GOOD
        and n >= _LEAST.get(event, _LEAST_OF_OTHERS)
        and n >= _OFTEN * step.usual_events[event]
    ]
    return f"It had {', '.join(named)}." if named else ""


def in_full(step: SlowStep) -> Iterator[str]:
    """All that was counted of the step, beside what is usual."""
    some = {event: n for event, n in step.events.items() if n}
    if not some:
        return
    form = "{:36} {:>9} {:>12}"
    yield ""
    yield form.format("WHAT IT HAD", "THIS STEP", "USUAL")
    for event, n in some.items():
        yield form.format(f"{EVENTS[event]}s", f"{n:,.0f}", f"{step.usual_events[event]:,.0f}")


def _cell(row: StepRow, events: tuple[str, ...], cannot_tell: Mapping[str, str]) -> str:
    if _CAPABILITY[events[0]] in cannot_tell:
        return "-"
    counts = [row.events[event] for event in events]
    return percent(counts[0], sum(counts)) if len(counts) > 1 else compact(round(counts[0]))


def _faults(row: StepRow) -> float:
    return row.events["fault_minor"] + row.events["fault_major"]
