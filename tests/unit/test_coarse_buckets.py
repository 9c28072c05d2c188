"""Exported buckets: a quantile is known to lie in its bucket, and errors of two add up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.judge.migration.distribution import Buckets, Distribution
from tracer.judge.migration.intervals import quantile_interval, ratio

EDGES = 1e-4 * 2.0 ** np.arange(16)
COARSE = Buckets(np.r_[0.0, EDGES], np.r_[EDGES, np.inf], coarse=True)


def distribution(durations, windows=40):
    """Spread over the windows in turn."""
    window = np.arange(len(durations)) % windows
    cell = window * len(COARSE.upper) + np.searchsorted(EDGES, durations)
    cells, place, count = np.unique(cell, return_inverse=True, return_counts=True)
    return Distribution(
        windows,
        cells // len(COARSE.upper),
        cells % len(COARSE.upper),
        count,
        np.bincount(place, durations),
        COARSE,
    )


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.floats(0.001, 1.0), st.sampled_from([0.5, 0.99, 0.999]))
def test_the_quantile_is_within_its_bounds(seed, median, q):
    durations = np.random.default_rng(seed).lognormal(np.log(median), 1.0, 4000)

    of = distribution(durations)

    exact = float(np.quantile(durations, q, method="inverted_cdf"))
    assert of.at_least(q) <= exact <= of.at_most(q)
    assert of.at_least(q) <= of.quantile(q) <= of.at_most(q)


def test_what_the_buckets_cannot_tell_apart_is_no_improvement():
    was, now = np.full(4000, 0.0110), np.full(4000, 0.0120)  # of one bucket

    change = ratio(*(quantile_interval(distribution(each), 0.5, 0.95) for each in (now, was)))

    assert (change.low, change.high) == pytest.approx((0.5, 2.0))


def test_a_quantile_beyond_the_last_edge_has_no_upper_bound():
    of = quantile_interval(distribution(np.full(4000, 100.0)), 0.999, 0.95)

    assert (of.low, of.high) == (EDGES[-1], np.inf)


def test_the_mean_is_exact_in_any_bucket():
    durations = np.random.default_rng(1).lognormal(-4.0, 1.0, 4000)

    of = distribution(durations)

    assert of.seconds_by_window.sum() == pytest.approx(durations.sum())
    assert of.duration / of.observations == pytest.approx(durations.mean())
