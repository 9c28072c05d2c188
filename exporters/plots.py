"""What the page plots: the history as plain numbers, slot by slot, bounded in size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from exporters.history import SLOT_SECONDS, SLOTS, Grid, Labels, Past, Slot
from tracer import catalog

_TENANTS, _PAIRS, _CPUS = 8, 20, 64
"""What is plotted: those with the most time."""

_LAST_MINUTE = 60 // SLOT_SECONDS

_BITES = 0.01
"""An aggressor is active while it takes this part of the time."""

_PAUSE = 2
"""Slots for which an aggressor may rest without beginning anew."""

_T = TypeVar("_T")

Plot = dict[str, Any]
Pair = tuple[str, str]
"""Victim and aggressor."""

Timeline = Sequence[Slot | None]
"""Slot after slot up to the newest; None where the agent published nothing."""


def plots(past: Past, unix_offset: float) -> Plot:
    """
    For JSON.

    :param unix_offset: what the history's clock is behind the one of the world, in seconds
    """
    timeline = _timeline(past.slots)
    shown = _durations(timeline, len(past.edges) + 1)
    tenants = _most_descheduled(timeline)
    begin = (past.slots[-1].number + 1 - len(timeline)) * SLOT_SECONDS if past.slots else past.until
    return {
        "begin": begin + unix_offset,
        "until": past.until + unix_offset,
        "slot_seconds": SLOT_SECONDS,
        "span_seconds": SLOT_SECONDS * SLOTS,
        "covered": _each(timeline, lambda slot: round(slot.seconds, 3)),
        "bounds": [0, *past.edges, None][shown.start : shown.stop + 1],
        "tenants": [_tenant(timeline, name, shown) for name in (None, *tenants[:_TENANTS])],
        "more_tenants": max(0, len(tenants) - _TENANTS),
        "blame": list(_blame(timeline)),
        "steal": list(_steal(timeline)),
    }


def _timeline(slots: Sequence[Slot]) -> Timeline:
    """At most SLOTS of them."""
    by_number = {slot.number: slot for slot in slots}
    newest = max(by_number, default=0)
    oldest = max(min(by_number, default=1), newest + 1 - SLOTS)
    return [by_number.get(number) for number in range(oldest, newest + 1)]


def _durations(timeline: Timeline, buckets: int) -> slice:
    """The buckets from the first to the last that has an interval in it."""
    total = np.zeros(buckets)
    for slot in filter(None, timeline):
        total += slot.intervals.values.sum(axis=0)
    some = np.flatnonzero(total)
    return slice(int(some[0]), int(some[-1]) + 1) if len(some) else slice(0, 0)


def _most_descheduled(timeline: Timeline) -> list[str]:
    seconds: dict[str, float] = defaultdict(float)
    for slot in filter(None, timeline):
        grid = slot.descheduled
        for tenant, total in zip(grid.tenants, grid.values.sum(axis=1).tolist(), strict=True):
            seconds[tenant] += total
    return sorted((t for t, s in seconds.items() if s > 0), key=lambda tenant: -seconds[tenant])


def _tenant(timeline: Timeline, tenant: str | None, shown: slice) -> Plot:
    """``tenant`` None stands for all together."""
    intervals = _each(timeline, lambda slot: _row(slot.intervals, tenant)[shown].tolist())
    seconds = _each(timeline, lambda slot: _row(slot.descheduled, tenant).tolist())
    return {
        "tenant": tenant,
        "intervals": intervals,
        "seconds": {
            cause: [each and _short(each[at]) for each in seconds]
            for at, cause in enumerate(catalog.DESCHEDULES)
        },
    }


def _row(grid: Grid, tenant: str | None) -> NDArray[np.float32]:
    return grid.values.sum(axis=0) if tenant is None else grid.row(tenant)


def _blame(timeline: Timeline) -> Iterator[Plot]:
    """By victim and aggressor: those with the most time in the last minute, then in all."""
    causes: dict[Pair, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    series: dict[Pair, list[float | None]] = defaultdict(lambda: _each(timeline, lambda _: 0.0))
    for at, slot in enumerate(timeline):
        for (victim, aggressor, cause), seconds in (slot.blame if slot else {}).items():
            pair = victim, aggressor
            causes[pair][cause] += seconds
            series[pair][at] = (series[pair][at] or 0.0) + seconds
    recent = {pair: sum(filter(None, each[-_LAST_MINUTE:])) for pair, each in series.items()}
    order = sorted(recent, key=lambda p: (recent[p], sum(causes[p].values())), reverse=True)
    for pair in _chosen(order):
        yield {
            "victim": pair[0],
            "aggressor": pair[1],
            "causes": {cause: _short(seconds) for cause, seconds in causes[pair].items()},
            "seconds": [each and _short(each) for each in series[pair]],
            "last_minute": _short(recent[pair]),
            "since_slot": _since(series[pair]),
        }


def _chosen(order: Sequence[Pair]) -> Iterator[Pair]:
    """The first ones, and then the first of victims that are not among them."""
    yield from order[:_PAIRS]
    victims = {victim for victim, _ in order[:_PAIRS]}
    firsts = {victim: by for victim, by in reversed(order) if victim not in victims}
    yield from islice(firsts.items(), _PAIRS)


def _since(series: Sequence[float | None]) -> int | None:
    """The slot in which the present episode began; None when it is over."""
    began = None
    for at in range(len(series) - 1, -1, -1):
        if (series[at] or 0) >= _BITES * SLOT_SECONDS:
            began = at
        elif (len(series) if began is None else began) - at > _PAUSE:
            break
    return began


def _steal(timeline: Timeline) -> Iterator[Plot]:
    total: dict[Labels, float] = defaultdict(float)
    for slot in filter(None, timeline):
        for cpu, seconds in slot.steal.items():
            total[cpu] += seconds
    for cpu in sorted(total, key=lambda cpu: -total[cpu])[:_CPUS]:
        series = [slot and _short(slot.steal.get(cpu, 0.0)) for slot in timeline]
        yield {"cpu": cpu[0], "seconds": series}


def _each(timeline: Timeline, tell: Callable[[Slot], _T]) -> list[_T | None]:
    return [None if slot is None else tell(slot) for slot in timeline]


def _short(seconds: float) -> float:
    """To the microsecond: more digits only make the page larger."""
    return round(seconds, 6)
