"""Durations counted by window and histogram bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tracer.ledger.histogram import edges
from tracer.ledger.profile import Profile


@dataclass(frozen=True, slots=True)
class Buckets:
    """b buckets of durations, in seconds."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    """(b,) infinite where the last one has no bound."""

    coarse: bool
    """Too wide to tell a quantile within: its bucket is all that is known of it."""


KERNEL = Buckets(
    np.r_[edges()[0] * 32 / 33, edges()[:-1]] / 1e9,
    edges() / 1e9,
    coarse=False,
)
_OPEN = 2.0  # times its lower edge: to where a bucket without a bound is drawn


@dataclass(frozen=True)
class Distribution:
    """
    n cells of the windows x buckets that were observed at all. Seconds.

    Within a bucket observations are taken to be spread evenly around their mean, as far as the
    bucket allows: a quantile is within the bucket, and moves as smoothly as the observations do.
    Where their sum is not known the middle of the bucket is the mean. Coarse buckets are too wide
    for that: there a quantile is only a place for its mark, between ``at_least`` and ``at_most``.
    """

    windows: int
    window: NDArray[np.int64]
    """(n,)"""

    bucket: NDArray[np.int64]
    count: NDArray[np.int64]
    seconds: NDArray[np.float64] | None = None
    """(n,) what the observations of a cell add up to."""

    buckets: Buckets = KERNEL

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
    def seconds_by_window(self) -> NDArray[np.float64]:
        """(windows,) what the observations add up to, where that is known."""
        assert self.seconds is not None
        return np.bincount(self.window, self.seconds, self.windows).astype(np.float64)

    @cached_property
    def total(self) -> NDArray[np.int64]:
        """(b,)"""
        return np.bincount(self.bucket, self.count, len(self.buckets.upper)).astype(np.int64)

    def quantile(self, q: float) -> float:
        """In seconds, 0 < q < 1. There must be an observation."""
        at, within = self._place(q)
        low, high = self._spread[0][at], self._spread[1][at]
        return float(low + within * (high - low))

    def at_least(self, q: float) -> float:
        """What the q-quantile cannot be below."""
        at = self._place(q)[0]
        return float(self.buckets.lower[at]) if self.buckets.coarse else self.quantile(q)

    def at_most(self, q: float) -> float:
        """What the q-quantile cannot be above."""
        at = self._place(q)[0]
        return float(self.buckets.upper[at]) if self.buckets.coarse else self.quantile(q)

    def beyond(self, q: float) -> NDArray[np.float64]:
        """(windows,) of the longest (1 - q) of all observations, how many are each window's."""
        at, within = self._place(q)
        part = np.where(self.bucket > at, 1.0, np.where(self.bucket == at, 1 - within, 0.0))
        return np.bincount(self.window, part * self.count, self.windows).astype(np.float64)

    def survival(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(m,) upper edges of the buckets that were observed, and the part beyond each."""
        some = np.flatnonzero(self.total)
        return self._bounded[some], 1 - np.cumsum(self.total)[some] / self.observations

    def _place(self, q: float) -> tuple[int, float]:
        """The bucket of the quantile, and the part of the bucket's observations before it."""
        upto = np.cumsum(self.total)
        rank = q * upto[-1]
        at = int(np.searchsorted(upto, rank))
        return at, float(1 - (upto[at] - rank) / self.total[at])

    @cached_property
    def _spread(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(b,) between which the observations of each bucket lie."""
        lower, upper = self.buckets.lower, self._bounded
        if self.seconds is None:
            return lower, upper
        sums = np.bincount(self.bucket, self.seconds, len(upper))
        mean = np.divide(sums, self.total, out=lower.copy(), where=self.total > 0)
        mean = np.clip(mean, lower, upper)  # the outer buckets hold what is beyond them, too
        around = np.minimum(mean - lower, upper - mean)
        return mean - around, mean + around

    @property
    def _bounded(self) -> NDArray[np.float64]:
        """(b,) upper edges to draw."""
        upper = self.buckets.upper
        return np.where(np.isinf(upper), _OPEN * self.buckets.lower, upper)

    def repeated(self, times: int) -> Distribution:
        """What it would be, had it gone on like this for so many times as long."""
        shift = np.repeat(np.arange(times) * self.windows, len(self.window))
        seconds = None if self.seconds is None else np.tile(self.seconds, times)
        columns = (np.tile(column, times) for column in (self.window, self.bucket, self.count))
        window, bucket, count = columns
        return replace(
            self,
            windows=self.windows * times,
            window=window + shift,
            bucket=bucket,
            count=count,
            seconds=seconds,
        )
