"""A figure measured several times: its median, and how far the measurements lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of ``n`` measurements between a lower and an upper bound."""

    median: float
    low: float
    high: float
    n: int

    @classmethod
    def quartiles(cls, values: Sequence[float]) -> Spread:
        """The bounds hold the middle half of the measurements."""
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
        return cls(float(median), float(low), float(high), len(values))

    @classmethod
    def confidence(cls, values: Sequence[float]) -> Spread:
        """
        The bounds hold the median itself with 95 %: percentile bootstrap, Efron 1979, with a fixed
        seed, so that the same measurements give the same bounds.
        """
        drawn = np.random.default_rng(0).choice(values, (_RESAMPLES, len(values)))
        low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
        return cls(float(np.median(values)), float(low), float(high), len(values))

    @classmethod
    def exactly(cls, value: float) -> Spread:
        """Computed, or measured once."""
        return cls(value, value, value, 1)
