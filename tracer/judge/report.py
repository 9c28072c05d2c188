"""
The report: where the tail of step latency went, and who took it. A screen of plain text for people,
a dictionary for programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from tracer import catalog
from tracer.catalog import Group
from tracer.judge import counts, stalls, tiers
from tracer.judge.explain import excess, sentence
from tracer.judge.words import CAUSES, clipped, compact, count, duration, percent, wrapped
from tracer.ledger.summary import ByCause, Summary

_ROWS, _TAILS, _CAUSES, _BLAMES, _SLOWEST = 12, 3, 4, 8, 5  # what fits one screen
_SHOWN = Group.ON_CPU, Group.WANTED, Group.WAITED
_SURE = 1000  # below as many steps the p999 is the longest step


def as_dict(summary: Summary) -> dict[str, Any]:
    """The summary for JSON: all rows, times in seconds."""
    return asdict(summary)


def report(summary: Summary) -> list[str]:
    """Lines of at most WIDTH columns."""
    return _screen(
        summary, _header, _tails, _stalls, _table, _blame, counts.section, _slowest, _absent
    )


def top(summary: Summary) -> list[str]:
    """The same of a few seconds, which are too few for a tail."""
    return _screen(summary, _header, _table, _blame, _slowest, _absent)


def _screen(summary: Summary, *sections: Callable[[Summary], Iterator[str]]) -> list[str]:
    """Those that have something to say, an empty line between them."""
    written = [lines for section in sections if (lines := list(section(summary)))]
    return [line for lines in written for line in ["", *lines]][1:]


def _header(summary: Summary) -> Iterator[str]:
    kinds = {row.step for row in summary.rows if not row.is_stage}
    tenants = {row.tenant for row in summary.rows}
    parts = [duration(summary.seconds), count(summary.steps, "step")]
    parts += [count(len(kinds), "kind"), count(len(tenants), "tenant")]
    parts += ["nothing lost" if not summary.lost else "LOSSES, see below"]
    yield f"tailtrace: {', '.join(parts)}"
    if not summary.rows:
        yield "No step has ended yet. Does the engine mark its steps, and do the targets match it?"


def _table(summary: Summary) -> Iterator[str]:
    if not summary.rows:
        return
    form = "{:15} {:16} {:>9} {:>8} {:>8} {:>9} {:>8} {:>6} {:>6} {:>6}"
    titles = ("TENANT", "STEP", "COUNT", "P50", "P99", "P999 ", "P999/P50")
    yield form.format(*titles, "ON CPU", "WANTED", "WAITED")
    for row in summary.rows[:_ROWS]:
        total = sum(row.seconds.values())
        yield form.format(
            clipped(row.tenant, 15),
            clipped(f"- {row.step}" if row.is_stage else row.step, 16),
            compact(row.count),
            duration(row.p50),
            duration(row.p99),
            duration(row.p999) + ("*" if row.count < _SURE else " "),
            f"{row.p999 / row.p50:.3g}",
            *(percent(_of(row.seconds, group), total) for group in _SHOWN),
        )
    if len(summary.rows) > _ROWS:
        yield f"and {len(summary.rows) - _ROWS} more"
    if any(row.count < _SURE for row in summary.rows[:_ROWS]):
        yield f"* of fewer than {_SURE:,} steps the P999 is the longest"
    unexplained = _of_all(summary, Group.REMAINDER)
    total = sum(_of_all(summary, group) for group in Group)
    yield f"{percent(unexplained, total)} of the time is unexplained"


def _tails(summary: Summary) -> Iterator[str]:
    rankings = tiers.rank_tails(summary)[:_TAILS]
    if not rankings:
        return
    yield "Where the tail went: the average step beyond P99, against a median one"
    for row, ranking in rankings:
        longer = sum(row.tail.values()) - sum(row.typical.values())
        name = f"{clipped(row.tenant, 24)} {clipped(row.step, 24)}"
        yield from wrapped(f"{name}, {count(row.tail_count, 'step')}: {tiers.verdict(ranking)}")
        for cause, seconds in excess(row.tail, row.typical)[:_CAUSES]:
            yield f"  {duration(seconds):>8} {percent(seconds, longer):>6}  {CAUSES[cause]}"


def _stalls(summary: Summary) -> Iterator[str]:
    for line in stalls.as_lines(summary):
        yield from wrapped(line.strip(), indent="  " if line.startswith(" ") else "")


def _blame(summary: Summary) -> Iterator[str]:
    if not summary.blame:
        return
    yield "Who had the CPU"
    form = "{:30} {:24} {:>9}  {}"
    yield form.format("AGGRESSOR", "VICTIM", "TIME", "THE VICTIM WAS")
    for row in summary.blame[:_BLAMES]:
        names = clipped(row.aggressor, 30), clipped(row.victim, 24)
        yield form.format(*names, duration(row.seconds), CAUSES[row.cause])


def _slowest(summary: Summary) -> Iterator[str]:
    if not summary.slowest:
        return
    yield f"The slowest steps of the last {summary.window_seconds} s"
    for step in summary.slowest[:_SLOWEST]:
        yield from wrapped(sentence(step), indent="  ")


def _absent(summary: Summary) -> Iterator[str]:
    names: dict[str, list[str]] = {}
    for name, reason in summary.cannot_tell.items():
        names.setdefault(reason, []).append(name)
    for reason, untold in names.items():
        yield from wrapped(f"{', '.join(untold)}: cannot be told here: {reason}")
    if summary.lost:
        lost = ", ".join(f"{reason} {n:,}" for reason, n in sorted(summary.lost.items()))
        yield from wrapped(f"lost: {lost}")


def _of(seconds: ByCause, group: Group) -> float:
    return sum(seconds[cause.name] for cause in catalog.CAUSES if cause.group is group)


def _of_all(summary: Summary, group: Group) -> float:
    return sum(_of(row.seconds, group) for row in summary.rows if not row.is_stage)
