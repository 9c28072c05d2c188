"""Durations counted by window and histogram bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tracer.ledger.histogram import BUCKETS, edges
from tracer.ledger.profile import Profile

_UPPER = edges() / 1e9
_LOWER = np.r_[edges()[0] * 32 / 33, edges()[:-1]] / 1e9


@dataclass(frozen=True)
class Distribution:
    """
    n cells of the windows x buckets that were observed at all. Seconds.

    Within a bucket observations are taken to be spread evenly around their mean, as far as the
    bucket allows: a quantile is within the bucket, and moves as smoothly as the observations do.
    Where their sum is not known the middle of the bucket is the mean.
    """

    windows: int
    window: NDArray[np.int64]
    """(n,)"""

    bucket: NDArray[np.int64]
    count: NDArray[np.int64]
    seconds: NDArray[np.float64] | None = None
    """(n,) what the observations of a cell add up to."""

    @classmethod
    def of(cls, windows: int, profiles: Sequence[tuple[int, Profile]]) -> Distribution:
        """Windows with a profile of one row, whose columns, if any, add up to the durations."""
        window = [at for at, _ in profiles]
        cell, count, ns = (
            np.concatenate([getattr(profile, name) for _, profile in profiles])
            for name in Profile.__slots__
        )
        size = [len(profile.cell) for _, profile in profiles]
        seconds = ns.sum(axis=1) / 1e9 if ns.shape[1] else None
        return cls(windows, np.repeat(window, size), cell, count, seconds)

    @property
    def observations(self) -> int:
        return int(self.total.sum())

    @property
    def duration(self) -> float:
        """Of all observations together; 0 when it is not known."""
        return 0.0 if self.seconds is None else float(self.seconds.sum())

    @cached_property
    def by_window(self) -> NDArray[np.float64]:
        """(windows,) observations."""
        return np.bincount(self.window, self.count, self.windows).astype(np.float64)

    @cached_property
    def total(self) -> NDArray[np.int64]:
        """(BUCKETS,)"""
        return np.bincount(self.bucket, self.count, BUCKETS).astype(np.int64)

    def quantile(self, q: float) -> float:
        """In seconds, 0 < q < 1. There must be an observation."""
        at, within = self._place(q)
        low, high = self._spread[0][at], self._spread[1][at]
        return float(low + within * (high - low))

    def beyond(self, q: float) -> NDArray[np.float64]:
        """(windows,) of the longest (1 - q) of all observations, how many are each window's."""
        at, within = self._place(q)
        part = np.where(self.bucket > at, 1.0, np.where(self.bucket == at, 1 - within, 0.0))
        return np.bincount(self.window, part * self.count, self.windows).astype(np.float64)

    def survival(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(m,) upper edges of the buckets that were observed, and the part beyond each."""
        some = np.flatnonzero(self.total)
        return _UPPER[some], 1 - np.cumsum(self.total)[some] / self.observations

    def _place(self, q: float) -> tuple[int, float]:
        """The bucket of the quantile, and the part of the bucket's observations before it."""
        upto = np.cumsum(self.total)
        rank = q * upto[-1]
        at = int(np.searchsorted(upto, rank))
        return at, float(1 - (upto[at] - rank) / self.total[at])

    @cached_property
    def _spread(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(BUCKETS,) between which the observations of each bucket lie."""
        if self.seconds is None:
            return _LOWER, _UPPER
        sums = np.bincount(self.bucket, self.seconds, BUCKETS)
        mean = np.divide(sums, self.total, out=_LOWER.copy(), where=self.total > 0)
        mean = np.clip(mean, _LOWER, _UPPER)  # the outer buckets hold what is beyond them, too
        around = np.minimum(mean - _LOWER, _UPPER - mean)
        return mean - around, mean + around

    def repeated(self, times: int) -> Distribution:
        """What it would be, had it gone on like this for so many times as long."""
        shift = np.repeat(np.arange(times) * self.windows, len(self.window))
        seconds = None if self.seconds is None else np.tile(self.seconds, times)
        columns = (np.tile(column, times) for column in (self.window, self.bucket, self.count))
        window, bucket, count = columns
        return Distribution(self.windows * times, window + shift, bucket, count, seconds)
