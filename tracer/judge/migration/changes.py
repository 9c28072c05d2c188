"""Which causes and tiers went away, and which appeared: seconds per step, before and after."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tracer.catalog import CAUSES, Group
from tracer.judge.migration.intervals import Interval, mean_interval
from tracer.judge.migration.sample import Sample
from tracer.judge.tiers import TIERS


def _parts() -> dict[str, tuple[str, ...]]:
    """Tiers that ledgers tell apart, then all other causes by their group."""
    parts = {f"{tier.number} {tier.name}": tier.causes for tier in TIERS if tier.causes}
    tiered = {cause for causes in parts.values() for cause in causes}
    for group in Group:
        others = tuple(c.name for c in CAUSES if c.group is group and c.name not in tiered)
        if others:
            parts[f"{group}, lower tiers too" if "running" in others else group] = others
    return parts


PARTS = _parts()
"""Causes by the tier or the group that they belong to, in the order in which work pays."""

_SMALL = 0.1  # of what it was: then it has gone
_MINOR = 0.01  # of a step: below, nothing is said to have gone or appeared


class Change(StrEnum):
    GONE = "gone"
    APPEARED = "appeared"
    LESS = "less"
    MORE = "more"
    SAME = "no change told"
    UNKNOWN = "cannot be told"


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseChange:
    """Of a cause, or of a part: a tier or a group of causes as a whole."""

    name: str
    is_part: bool
    before: Interval | None
    """Seconds per step; None where it cannot be told."""

    after: Interval | None
    change: Change


def changes(before: Sample, after: Sample, confidence: float) -> Sequence[CauseChange]:
    """Parts in their order, each followed by its causes. Empty where there are no steps."""
    if not (before.steps.any() and after.steps.any()):
        return []
    found = []
    for part, causes in PARTS.items():
        found.append(_change(part, causes, before, after, confidence))
        found += [_change(cause, (cause,), before, after, confidence) for cause in causes]
    return found


def _change(
    name: str, causes: Sequence[str], before: Sample, after: Sample, confidence: float
) -> CauseChange:
    was, now = (_per_step(sample, causes, confidence) for sample in (before, after))
    step = float(before.causes.sum() / before.steps.sum())
    change = _word(was, now, step) if was and now else Change.UNKNOWN
    return CauseChange(name=name, is_part=name in PARTS, before=was, after=now, change=change)


def _per_step(sample: Sample, causes: Sequence[str], confidence: float) -> Interval | None:
    """None when none of the causes can be told."""
    told = [
        at
        for at, cause in enumerate(CAUSES)
        if cause.name in causes and cause.name not in sample.cannot_tell
    ]
    if not told:
        return None
    return mean_interval(sample.causes[:, told].sum(axis=1), sample.steps, confidence)


def _word(was: Interval, now: Interval, step: float) -> Change:
    difference = now.value - was.value
    down = math.hypot(now.value - now.low, was.high - was.value)
    up = math.hypot(now.high - now.value, was.value - was.low)
    if difference - down <= 0 <= difference + up:
        return Change.SAME
    if difference < 0:
        gone = now.value < _SMALL * was.value and was.value >= _MINOR * step
        return Change.GONE if gone else Change.LESS
    appeared = was.value < _SMALL * now.value and now.value >= _MINOR * step
    return Change.APPEARED if appeared else Change.MORE
