"""
The last half hour in slots of 10 s: by how much counters grew, so that whoever looks late still
sees since when.

It is kept from what is published anyway: some 4 MB at 100 tenants.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tracer import catalog
from tracer.catalog import Metric
from tracer.model import Family, Histogram

SLOT_SECONDS = 10
SLOTS = 180

_MOST_BLAMED = 50
"""Rows of blame that a slot keeps, those with the most time."""

Labels = Sequence[str]


@dataclass(frozen=True, slots=True)
class Grid:
    """A row of numbers for each tenant."""

    tenants: tuple[str, ...]
    values: NDArray[np.float32]
    """(tenants, n)"""

    @classmethod
    def of(cls, tenants: Sequence[str], values: NDArray[np.float64]) -> Grid:
        """Rows of the same tenant are added up."""
        row = {tenant: at for at, tenant in enumerate(dict.fromkeys(tenants))}
        total = np.zeros((len(row), values.shape[1]))
        np.add.at(total, [row[tenant] for tenant in tenants], values)
        return cls(tuple(row), total.astype(np.float32))

    def __add__(self, other: Grid) -> Grid:
        values = np.vstack([self.values, other.values]).astype(np.float64)
        return Grid.of([*self.tenants, *other.tenants], values)

    def row(self, tenant: str) -> NDArray[np.float32]:
        """Zeros for a tenant that has none."""
        if tenant in self.tenants:
            row: NDArray[np.float32] = self.values[self.tenants.index(tenant)]
            return row
        return np.zeros(self.values.shape[1], np.float32)


@dataclass(frozen=True, slots=True)
class Slot:
    """What happened in 10 s."""

    number: int
    """It begins at ``number * SLOT_SECONDS`` of the clock that :class:`History` is fed with."""

    seconds: float
    """That what follows is of: from publishing to publishing, so SLOT_SECONDS only about."""

    intervals: Grid
    """Deschedule intervals by tenant, over the buckets of their durations."""

    descheduled: Grid
    """Seconds by tenant, over ``catalog.DESCHEDULES``."""

    blame: Mapping[Labels, float]
    """(victim, aggressor, cause) -> seconds."""

    steal: Mapping[Labels, float]
    """(cpu,) -> seconds."""

    def __add__(self, other: Slot) -> Slot:
        return Slot(
            self.number,
            self.seconds + other.seconds,
            self.intervals + other.intervals,
            self.descheduled + other.descheduled,
            _largest(_sum(self.blame, other.blame)),
            _sum(self.steal, other.steal),
        )


@dataclass(frozen=True, slots=True)
class Past:
    """What the history tells at one time. It never changes."""

    slots: tuple[Slot, ...] = ()
    """Oldest first. One in which nothing was published is missing."""

    edges: tuple[float, ...] = ()
    """(n,) upper bounds of the durations of deschedule intervals, in seconds."""

    until: float = 0.0
    """When counters were read last; the newest slot may be longer."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """The rows of one metric as they were published."""

    labels: tuple[Labels, ...] = ()
    values: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 1)))
    """(n, k): a counter's value, or a histogram's buckets and then its sum."""

    @classmethod
    def of(cls, family: Family) -> _Reading:
        rows = family.rows.values()
        if family.edges is None:
            return cls(tuple(family.rows), np.array([*rows], np.float64).reshape(-1, 1))
        histograms = [row for row in rows if isinstance(row, Histogram)]
        values = np.zeros((len(rows), len(family.edges) + 2))
        if histograms:
            values[:, :-1] = np.stack([each.counts for each in histograms])
            values[:, -1] = [each.sum for each in histograms]
        return cls(tuple(family.rows), values)

    def grown_since(self, before: _Reading) -> NDArray[np.float64]:
        """(n, k) A row that is new, or began anew, grew by all that it has."""
        if not before.labels:
            return self.values
        row = {labels: at for at, labels in enumerate(before.labels)}
        padded = np.vstack([before.values, np.zeros((1, before.values.shape[1]))])
        earlier = padded[[row.get(labels, -1) for labels in self.labels]]
        began_anew = (self.values < earlier).any(axis=1, keepdims=True)
        return np.where(began_anew, self.values, self.values - earlier)

    def rows_since(self, before: _Reading) -> dict[Labels, float]:
        """By how much each counter grew, of those that did."""
        grown = self.grown_since(before)[:, -1].tolist()
        return {labels: by for labels, by in zip(self.labels, grown, strict=True) if by > 0}


_NOTHING = _Reading()


class History:
    """Fed with every publishing."""

    def __init__(self) -> None:
        self._slots: deque[Slot] = deque(maxlen=SLOTS)
        self._edges: tuple[float, ...] = ()
        self._until: float | None = None
        self._last: dict[Metric, _Reading] = {}

    def past(self) -> Past:
        return Past(tuple(self._slots), self._edges, self._until or 0.0)

    def add(self, families: Iterable[Family], now_seconds: float) -> None:
        """
        The first time only tells what counters grow from.

        :param now_seconds: of a clock that is never set
        """
        before, self._until = self._until, now_seconds
        slot = self._slot({each.metric: each for each in families}, now_seconds, before)
        if self._slots and self._slots[-1].number == slot.number:
            slot = self._slots.pop() + slot
        if before is not None:
            self._slots.append(slot)

    def _slot(
        self, families: Mapping[Metric, Family], now_seconds: float, before: float | None
    ) -> Slot:
        labels, grown = self._histograms(families.get(catalog.DESCHEDULE))
        tenants = [tenant for tenant, _ in labels]
        by_cause = np.array(
            [[cause == name for name in catalog.DESCHEDULES] for _, cause in labels]
        )
        return Slot(
            int(now_seconds // SLOT_SECONDS),
            now_seconds - (before or 0.0),
            Grid.of(tenants, grown[:, :-1]),
            Grid.of(tenants, by_cause.reshape(-1, len(catalog.DESCHEDULES)) * grown[:, -1:]),
            _largest(self._counters(families.get(catalog.BLAME))),
            self._counters(families.get(catalog.STEAL), since_boot=True),
        )

    def _histograms(self, family: Family | None) -> tuple[Sequence[Labels], NDArray[np.float64]]:
        if family is None or family.edges is None:
            return (), np.zeros((0, len(self._edges) + 2))
        self._edges = tuple(family.edges.tolist())
        now, before = self._read(family)
        return now.labels, now.grown_since(before)

    def _counters(self, family: Family | None, since_boot: bool = False) -> dict[Labels, float]:
        """``since_boot``: what a row has when it first appears was not counted just now."""
        if family is None:
            return {}
        now, before = self._read(family)
        known = set(before.labels if since_boot else now.labels)
        return {labels: by for labels, by in now.rows_since(before).items() if labels in known}

    def _read(self, family: Family) -> tuple[_Reading, _Reading]:
        """The rows as they are now, and as they were last."""
        now, before = _Reading.of(family), self._last.get(family.metric, _NOTHING)
        self._last[family.metric] = now
        return now, before


def _sum(one: Mapping[Labels, float], other: Mapping[Labels, float]) -> dict[Labels, float]:
    return {key: one.get(key, 0.0) + other.get(key, 0.0) for key in {**one, **other}}


def _largest(blame: Mapping[Labels, float]) -> dict[Labels, float]:
    by_time = sorted(blame.items(), key=lambda row: -row[1])
    return dict(by_time[:_MOST_BLAMED])
