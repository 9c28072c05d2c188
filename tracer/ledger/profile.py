"""Durations counted by row and histogram bucket, with what the observations add up to."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracer.ledger.grouping import Positions, group
from tracer.ledger.histogram import (
    BUCKETS,
    bucket_of,
    coarse_bucket_of,
    middle_of,
    rank_of_quantile,
)

_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Profile:
    """
    A sparse table: n cells of the rows x buckets that were observed at all.

    What a row is, its users say. With the ledgers summed by bucket of the step's wall time it
    tells what the slow steps are made of, without keeping any step.
    """

    cell: NDArray[np.int64]
    """(n,) row * BUCKETS + bucket, ascending."""

    count: NDArray[np.int64]
    ns: NDArray[np.int64]
    """(n, c) what the observations of a cell add up to."""

    @classmethod
    def of(
        cls, row: NDArray[np.int64], duration_ns: NDArray[np.int64], ns: NDArray[np.int64]
    ) -> Profile:
        """One observation each; ``ns`` is (n, c), where c may be 0."""
        one = np.ones(len(row), np.int64)
        return cls(row * BUCKETS + bucket_of(duration_ns), one, ns)._merged()

    @classmethod
    def empty(cls, columns: int) -> Profile:
        none = np.zeros(0, np.int64)
        return cls(none, none, np.zeros((0, columns), np.int64))

    @classmethod
    def total(cls, profiles: Sequence[Profile]) -> Profile:
        """The sum of one or more."""
        parts = [(p.cell, p.count, p.ns) for p in profiles]
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))._merged()

    def _merged(self) -> Profile:
        order, first = group(self.cell)
        return Profile(
            self.cell[order[first]],
            np.add.reduceat(self.count[order], first),
            np.add.reduceat(self.ns[order], first, axis=0),
        )

    def by_row(self) -> Profile:
        """One cell for each of ``rows``: all its observations in the first bucket."""
        return Profile(self.cell // BUCKETS * BUCKETS, self.count, self.ns)._merged()

    def rows(self) -> list[int]:
        """Those with an observation, ascending."""
        return [int(row) for row in np.unique(self.cell // BUCKETS)]

    def sums(self) -> NDArray[np.int64]:
        """(rows, c) what the observations of each of ``rows`` add up to."""
        return np.add.reduceat(self.ns, self._first_of_rows())

    def coarsened(self, edges_seconds: NDArray[np.float64]) -> NDArray[np.int64]:
        """(rows, n + 1) the counts of each of ``rows`` over the buckets of :func:`coarsen`."""
        _, place = np.unique(self.cell // BUCKETS, return_inverse=True)
        bucket = coarse_bucket_of(self.cell % BUCKETS, edges_seconds)
        counts = np.zeros((len(self.rows()), len(edges_seconds) + 1), np.int64)
        np.add.at(counts, (place, bucket), self.count)
        return counts

    def counts(self) -> NDArray[np.int64]:
        """(rows,) how many observations each of ``rows`` has."""
        return np.add.reduceat(self.count, self._first_of_rows())

    def quantiles(self, q: float) -> NDArray[np.float64]:
        """(rows,) a quantile of each of ``rows`` in ns, as :func:`quantile` tells it."""
        up_to, first = np.cumsum(self.count), self._first_of_rows()
        rank = up_to[first] - self.count[first] + rank_of_quantile(self.counts(), q)
        return middle_of(self.cell[np.searchsorted(up_to, rank)] % BUCKETS)

    def _first_of_rows(self) -> Positions:
        """(rows,) the first cell of each."""
        return np.unique(self.cell // BUCKETS, return_index=True)[1]

    def row(self, row: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Counts (BUCKETS,) and sums (BUCKETS, c) of a row."""
        first, last = np.searchsorted(self.cell, [row * BUCKETS, (row + 1) * BUCKETS])
        bucket = self.cell[first:last] - row * BUCKETS
        counts, ns = np.zeros(BUCKETS, np.int64), np.zeros((BUCKETS, self.ns.shape[1]), np.int64)
        counts[bucket], ns[bucket] = self.count[first:last], self.ns[first:last]
        return counts, ns


class Window:
    """The profile of the last seconds, kept in slots of one second."""

    def __init__(self, seconds: int, columns: int) -> None:
        self._seconds = seconds
        self._slots: deque[tuple[int, Profile]] = deque()
        self._none = Profile.empty(columns)

    def add(self, profile: Profile, now_ns: int) -> None:
        self._expire(now_ns)
        second = now_ns // _SECOND
        if self._slots and self._slots[-1][0] == second:
            profile = Profile.total([self._slots.pop()[1], profile])
        self._slots.append((second, profile))

    def profile(self, now_ns: int) -> Profile:
        self._expire(now_ns)
        return Profile.total([self._none, *(profile for _, profile in self._slots)])

    def _expire(self, now_ns: int) -> None:
        while self._slots and self._slots[0][0] <= now_ns // _SECOND - self._seconds:
            self._slots.popleft()
