"""Quantiles from the kernel's buckets against exact ones, and the buckets themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tracer.ledger import histogram

untimed = settings(deadline=None)


def bucket_of_one(ns: int) -> int:
    """As bpf/histogram.bpf.h computes it, one value at a time."""
    if ns < 1 << 10:
        return 0
    if ns >= 1 << 36:
        return 831
    octave = ns.bit_length() - 1
    return (octave - 10) * 32 + (ns >> (octave - 5) & 31)


def counts_of(ns: np.ndarray) -> np.ndarray:
    return np.bincount(histogram.bucket_of(ns), minlength=histogram.BUCKETS)


@untimed
@given(st.integers(0, 1 << 40))
def test_a_duration_falls_into_the_kernels_bucket(ns):
    assert bucket_of_one(ns) == histogram.bucket_of(ns)


def test_every_edge_begins_its_bucket_and_the_ns_before_ends_the_one_before():
    upper = histogram.edges()

    assert len(upper) == 832
    assert upper[-1] == 1 << 36
    assert_array_equal(np.arange(832), histogram.bucket_of(upper - 1))
    assert_array_equal(np.arange(1, 832), histogram.bucket_of(upper[:-1]))


heavy_tails = st.builds(
    lambda seed, alpha, n: (
        (np.random.default_rng(seed).pareto(alpha, n) * 1e6 + (1 << 10))
        .clip(max=(1 << 36) - 1)
        .astype(np.int64)
    ),
    seed=st.integers(0, 2**32 - 1),
    alpha=st.floats(0.3, 4),
    n=st.integers(1, 20_000),
)


@untimed
@given(heavy_tails, st.sampled_from([0.5, 0.9, 0.99, 0.999]))
def test_a_quantile_of_a_heavy_tail_is_within_1_6_percent(ns, q):
    exact = np.sort(ns)[math.ceil(round(q * len(ns), 6)) - 1]

    assert abs(histogram.quantile(counts_of(ns), q) - exact) <= 0.016 * exact


@untimed
@given(st.lists(st.integers(1 << 10, (1 << 36) - 1), min_size=1), st.floats(0, 1))
def test_a_quantile_of_anything_is_within_1_6_percent(values, q):
    exact = sorted(values)[max(1, math.ceil(round(q * len(values), 6))) - 1]

    found = histogram.quantile(counts_of(np.array(values)), q)

    assert abs(found - exact) <= 0.016 * exact


@untimed
@given(heavy_tails)
def test_the_tail_ratio_is_within_two_bucket_errors(ns):
    counts, ordered = counts_of(ns), np.sort(ns)
    exact = ordered[math.ceil(round(0.999 * len(ns), 6)) - 1] / ordered[(len(ns) + 1) // 2 - 1]

    ratio = histogram.quantile(counts, 0.999) / histogram.quantile(counts, 0.5)

    assert exact * (1 - 1 / 64) / (1 + 1 / 64) <= ratio <= exact * (1 + 1 / 64) / (1 - 1 / 64)


def test_no_observation_has_no_quantile():
    assert np.isnan(histogram.quantile(np.zeros(histogram.BUCKETS, np.int64), 0.999))


def test_many_histograms_at_once_give_each_its_own_quantile():
    rows = [np.array([2_000]), np.array([5_000_000] * 3), np.array([9, 1 << 37])]

    at_once = histogram.quantile(np.array([counts_of(row) for row in rows]), 0.5)

    assert_array_equal([histogram.quantile(counts_of(row), 0.5) for row in rows], at_once)


@untimed
@given(st.lists(st.integers(0, 1 << 38), min_size=1))
def test_coarse_buckets_hold_what_lies_below_their_edge(values):
    ns = np.array(values)

    coarse = histogram.coarsen(counts_of(ns), histogram.EDGES_SECONDS)

    below = [(ns < round(edge * 1e9)).sum() for edge in histogram.EDGES_SECONDS]
    assert_array_equal([*below, len(ns)], coarse.cumsum())


def test_an_edge_between_two_edges_is_refused():
    counts = np.zeros(histogram.BUCKETS, np.int64)

    with pytest.raises(ValueError, match="not edges"):
        histogram.coarsen(counts, np.array([0.001]))


def test_the_exported_edges_reach_from_33_us_to_34_s():
    assert len(histogram.EDGES_SECONDS) == 41
    assert histogram.EDGES_SECONDS[0] == 2**15 / 1e9
    assert histogram.EDGES_SECONDS[-1] == 2**35 / 1e9
