"""The bench's statistics on figures whose median and spread are known."""

import numpy as np

from bench.spread import Spread


def test_quartiles_hold_the_middle_half():
    assert Spread(3.0, 2.0, 4.0, 5) == Spread.quartiles([5, 1, 3, 2, 4])


def test_one_measurement_is_its_own_spread():
    assert Spread(7.0, 7.0, 7.0, 1) == Spread.quartiles([7])
    assert Spread(7.0, 7.0, 7.0, 1) == Spread.confidence([7])


def test_confidence_is_narrower_with_more_measurements():
    values = np.random.default_rng(1).normal(10, 1, 400)
    few, many = Spread.confidence(values[:20]), Spread.confidence(values)

    assert many.high - many.low < few.high - few.low


def test_confidence_holds_the_true_median_about_19_times_of_20():
    draws = np.random.default_rng(2).normal(10, 1, (200, 25))
    spreads = [Spread.confidence(values) for values in draws]
    held = sum(spread.low <= 10 <= spread.high for spread in spreads)

    assert 180 <= held <= 199


def test_the_same_measurements_give_the_same_interval():
    values = [1.0, 5.0, 2.0, 8.0, 3.0]

    assert Spread.confidence(values) == Spread.confidence(values)
