"""
Confidence intervals from counts per window.

Steps of one window share its disturbances, and a window resembles the one before. So windows, not
steps, are what is sampled, and the variance of a sum over windows is the long-run variance of a
first-order autoregressive series.

Intervals of quantiles are Woodruff's (J. Am. Stat. Assoc. 47, 1952, 635): the interval is taken
for the part of observations below the quantile, and read off the distribution at both ends. Those
of ratios are combined from those of their parts by MOVER (Zou and Donner, Stat. Med. 27, 2008,
1693), on a logarithmic scale. ``docs/verdict.md`` has how often they hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tracer.judge.migration.distribution import Distribution

_MOST_ALIKE = 0.9
"""Correlation of neighbours; beyond, windows are too few to tell it from 1."""

_FEWEST_FREE = 3.0


@dataclass(frozen=True, slots=True)
class Interval:
    value: float
    low: float
    high: float
    """Infinite when so few observations cannot bound it."""

    coarse: bool = False
    """The ends are those of buckets: errors of two such values do not cancel out by chance."""


def quantile_interval(distribution: Distribution, q: float, confidence: float) -> Interval:
    """Of the q-quantile, in the distribution's unit."""
    n = float(distribution.by_window.sum())
    variance, free = _variance_of_sum(distribution.beyond(q) - (1 - q) * distribution.by_window)
    # Never less than of independent observations, whatever few windows say.
    independent = q * (1 - q) * n
    variance = max(variance, independent)
    times = student(confidence, free)
    half = times * math.sqrt(variance) / n
    shift = min(_skew(variance / independent, q, times) / n, half / 2)
    low, high = q - half - shift, q + half - shift
    return Interval(
        distribution.quantile(q),
        distribution.at_least(low) if low > 0 else 0.0,
        distribution.at_most(high) if high < 1 else math.inf,
        distribution.buckets.coarse,
    )


def _skew(dispersion: float, q: float, times: float) -> float:
    """
    By how many observations the bounds of a count of rare events lie higher than those of a normal
    one: the Cornish-Fisher term of a negative binomial, whose variance is ``dispersion`` means.
    """
    return (2 * q - 1) * (2 * dispersion - 1) * (times**2 - 1) / 6


def mean_interval(
    total: NDArray[np.float64], of: NDArray[np.float64], confidence: float
) -> Interval:
    """Of sum(total) / sum(of), both (windows,) and not negative: a rate, or a mean."""
    whole = float(of.sum())
    value = float(total.sum()) / whole
    variance, free = _variance_of_sum(total - value * of)
    half = student(confidence, free) * math.sqrt(variance) / whole
    return Interval(value, max(value - half, 0.0), value + half)


def ratio(top: Interval, bottom: Interval, correlation: float = 0.0) -> Interval:
    """Of two values that are not negative, whose estimates are so correlated."""
    coarse = top.coarse or bottom.coarse
    if coarse:
        correlation = -1.0  # the worst case: errors add up
    if top.value <= 0 or bottom.value <= 0:
        return Interval(math.nan, 0.0, math.inf, coarse)
    down = _combined(_log(top.value, top.low), _log(bottom.high, bottom.value), correlation)
    up = _combined(_log(top.high, top.value), _log(bottom.value, bottom.low), correlation)
    value = top.value / bottom.value
    return Interval(value, value * math.exp(-down), value * math.exp(up), coarse)


def correlation(distribution: Distribution, one: float, other: float) -> float:
    """Between the estimates of two quantiles of the same distribution."""
    n = distribution.by_window
    a, b = (distribution.beyond(q) - (1 - q) * n for q in (one, other))
    scale = math.sqrt(float((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else 0.0


def student(confidence: float, free: float) -> float:
    """
    The quantile of Student's t distribution that bounds a two-sided interval.

    Within 3 % for 3 degrees of freedom, 0.1 % from 8 on (Abramowitz and Stegun, 26.7.5).
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / free**power for power, term in enumerate(terms, 1))


def _variance_of_sum(residual: NDArray[np.float64]) -> tuple[float, float]:
    """Of the sum of (windows,) deviations from their mean, and its degrees of freedom."""
    n = len(residual)
    squares = float(residual @ residual)
    if not squares or n < 2:
        return 0.0, _FEWEST_FREE
    alike = float(residual[1:] @ residual[:-1]) / squares
    alike += (1 + 3 * alike) / n  # the estimate's bias (Kendall, Biometrika 41, 1954, 403)
    alike = min(max(alike, 0.0), _MOST_ALIKE)
    independent = n * (1 - alike) / (1 + alike)
    variance = squares * n / (n - 1) * (1 + alike) / (1 - alike)
    return variance, max(independent - 1, _FEWEST_FREE)


def _log(larger: float, smaller: float) -> float:
    return math.log(larger / smaller) if smaller > 0 else math.inf


def _combined(a: float, b: float, correlation: float) -> float:
    if math.isinf(a) or math.isinf(b):
        return math.inf
    return math.sqrt(max(a * a + b * b - 2 * correlation * a * b, 0.0))
