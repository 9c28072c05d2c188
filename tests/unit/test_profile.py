"""The sparse table of durations tells what each of its rows tells alone."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tracer.ledger.histogram import EDGES_SECONDS, coarsen, quantile
from tracer.ledger.profile import Profile


@pytest.fixture
def profile():
    random = np.random.default_rng(0)
    row = random.choice([0, 3, 4, 900], 5000)
    duration = random.lognormal(15, 3, 5000).astype(np.int64)
    return Profile.of(row, duration, np.column_stack([duration, duration // 3]))


def test_all_rows_at_once_are_as_each_row_by_itself(profile):
    alone = [profile.row(row) for row in profile.rows()]

    assert_array_equal(
        [coarsen(counts, EDGES_SECONDS) for counts, _ in alone], profile.coarsened(EDGES_SECONDS)
    )
    assert_array_equal([ns.sum(axis=0) for _, ns in alone], profile.sums())
    assert_array_equal([counts.sum() for counts, _ in alone], profile.counts())


@pytest.mark.parametrize("q", [0.001, 0.5, 0.99, 0.999, 1.0])
def test_quantiles_of_all_rows_are_those_of_each(profile, q):
    alone = [quantile(profile.row(row)[0], q) for row in profile.rows()]

    assert_array_equal(alone, profile.quantiles(q))


def test_an_empty_table_has_no_rows():
    empty = Profile.empty(2)

    assert (0, 42) == empty.coarsened(EDGES_SECONDS).shape
    assert (0, 2) == empty.sums().shape
    assert [] == empty.quantiles(0.5).tolist()
