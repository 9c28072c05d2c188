"""
What a person who is called at night looks at first, as plain data for the page: the steps of the
last minute, the slowest of them in words, what is wrong with the machine, and what is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from tracer import catalog
from tracer.judge import doctor, memory, stalls, words
from tracer.judge.doctor import Diagnosis
from tracer.judge.explain import sentence
from tracer.judge.placement import Placement
from tracer.ledger.summary import ByCause, RecentRow, SlowStep, Summary
from tracer.model import Capability

_ROWS, _SLOWEST, _FINDINGS = 40, 15, 30
_SEGMENTS, _PROCESSES, _NODES, _MISPLACED = 12, 12, 16, 8
_A_KIND = 4  # of the slowest: a kind that is always slow must not hide the others


def overview(
    summary: Summary,
    capabilities: Sequence[Capability],
    placement: Placement | None,
    diagnosis: Diagnosis,
    now_ns: int,
) -> dict[str, Any]:
    """
    For JSON, times in seconds. Bounded, whatever engines and processes call themselves.

    :param placement: None where it cannot be told, or not yet
    :param now_ns: when the summary was made, by the monotonic clock
    """
    return {
        "traced_seconds": summary.seconds,
        "window_seconds": summary.window_seconds,
        "steps": summary.steps,
        "causes": list(_causes()),
        "recent": [_recent(row) for row in summary.recent[:_ROWS]],
        "more_recent": max(0, len(summary.recent) - _ROWS),
        "slowest": [_slow(step, now_ns) for step in islice(_mixed(summary.slowest), _SLOWEST)],
        "stalls": [line.strip() for line in stalls.as_lines(summary)],
        "placement": placement and _placement(placement),
        "findings": doctor.as_dict(diagnosis)["findings"][:_FINDINGS],
        "cannot_tell": dict(summary.cannot_tell),
        "lost": [
            {"reason": loss.name, "help": loss.help, "falsifies": loss.falsifies, "count": n}
            for loss in catalog.LOSSES
            if (n := summary.lost.get(loss.name, 0))
        ],
        "capabilities": [asdict(each) for each in capabilities],
    }


def _causes() -> Iterator[dict[str, Any]]:
    for cause in catalog.CAUSES:
        yield asdict(cause) | {"words": words.CAUSES[cause.name]}


def _recent(row: RecentRow) -> dict[str, Any]:
    return asdict(row) | {"seconds": _some(row.seconds)}


def _slow(step: SlowStep, now_ns: int) -> dict[str, Any]:
    return asdict(step) | {
        "seconds": _some(step.seconds),
        "typical": _some(step.typical),
        "ago": (now_ns - step.end_ns) / 1e9,
        "words": sentence(step),
    }


def _placement(placement: Placement) -> dict[str, Any]:
    told = memory.as_dict(placement)
    worst_first = sorted(told["processes"], key=_mismatch, reverse=True)
    return {
        "nodes": told["nodes"][:_NODES],
        "segments": [_without(each, "pids", "path") for each in told["segments"][:_SEGMENTS]],
        "processes": [_without(each, "threads") for each in worst_first[:_PROCESSES]],
        "findings": told["findings"][:_MISPLACED],
    }


def _mismatch(process: dict[str, Any]) -> float:
    """Of one that cannot be told, -1."""
    mismatch = process["mismatch"]
    return mismatch if isinstance(mismatch, float) else -1.0


def _without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def _some(seconds: ByCause) -> dict[str, float]:
    return {cause: s for cause, s in seconds.items() if s}


def _mixed(slowest: Sequence[SlowStep]) -> Iterator[SlowStep]:
    """Those first that took most longer than their median, but only a few of each kind."""
    seen: dict[tuple[str, str], int] = {}
    for step in sorted(slowest, key=lambda step: step.median - step.elapsed):
        kind = step.tenant, step.step
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= _A_KIND:
            yield step
