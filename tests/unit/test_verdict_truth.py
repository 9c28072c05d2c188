"""
How often verdicts are wrong, on machines whose truth is known.

The worst case for a criterion is a truth that lies exactly on its limit: passing is wrong as often
as failing, and anything further away is easier. Seeds are fixed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.synthetic import DESCHEDULES, STEPS, WINDOW, machine, sample
from tracer.judge.migration.criteria import Criteria
from tracer.judge.migration.figures import FIGURES
from tracer.judge.migration.intervals import ratio
from tracer.judge.migration.verdict import Outcome, judge, within
from tracer.record.meta import MachineKind

PAIR = ("chat", "decode")
MACHINES = {
    "usual": STEPS,
    "heavy tails in bursts": replace(STEPS, steepness=1.1, bursts=2.0),
    "few steps": replace(STEPS, per_window=60),
    "wandering": replace(STEPS, level=0.1, alike=0.5),
    "wide": replace(STEPS, spread=0.5),
}
SIZES = [(180, 180, 1.0), (60, 180, 1.5)]
"""Windows before and after, and how many times as many steps a window has after."""

RUNS = 150


def truths(steps, times):
    tail = steps.quantile(0.999)
    return {
        "step_p50": (steps.quantile(0.5), 1.0),
        "step_p999": (tail, 1.0),
        "step_p999_p50": (tail / steps.quantile(0.5), 1.0),
        "steps_per_second": (times * steps.per_window / WINDOW, times),
    }


def pairs(rng, steps, runs=RUNS):
    """Samples before and after without an effect but in number, and the factor of that."""
    quiet = replace(DESCHEDULES, per_window=1)
    for before, after, times in SIZES:
        more = replace(steps, per_window=times * steps.per_window)
        for _ in range(runs):
            first = sample(rng, before, steps, quiet)
            yield first, sample(rng, after, more, quiet), times


def test_intervals_of_95_percent_hold_93_to_97_of_100_times():
    rng, held, tried = np.random.default_rng(1), Counter(), Counter()
    for steps in MACHINES.values():
        for before, after, times in pairs(rng, steps):
            for name, (value, change) in truths(steps, times).items():
                of = [FIGURES[name].estimate(side, PAIR, 0.95) for side in (before, after)]
                for what, interval, truth in (
                    (name, of[1], value),
                    (f"ratio of {name}", ratio(of[1], of[0]), change),
                ):
                    held[what] += interval.low <= truth <= interval.high
                    tried[what] += 1
    coverage = {what: held[what] / tried[what] for what in tried}
    print(coverage)
    assert len(coverage) == 8
    assert {what: c for what, c in coverage.items() if not 0.93 <= c <= 0.97} == {}


def test_on_its_limit_at_most_1_of_100_figures_is_judged_and_so_judged_wrongly():
    rng, wrong, tried = np.random.default_rng(2), Counter(), 0
    for steps in MACHINES.values():
        for before, after, times in pairs(rng, steps):
            tried += 1
            for name, (value, change) in truths(steps, times).items():
                was, now = (
                    FIGURES[name].estimate(side, PAIR, Criteria().confidence)
                    for side in (before, after)
                )
                wrong[name, within(now, None, value)] += 1
                wrong[name, "compared", within(ratio(now, was), None, change)] += 1
    part = {what: n / tried for what, n in wrong.items() if what[-1] is not Outcome.INCONCLUSIVE}
    print(part)
    assert {what: p for what, p in part.items() if p > 0.01} == {}


VM = machine(MachineKind.VIRTUAL, cpus=88, numa_nodes=1, kernel="6.1.0")
STALLED = replace(DESCHEDULES, tail_from=0.05)
GOOD = replace(STEPS, tail_from=0.011, steepness=6.0)
BAD = replace(STEPS, tail_from=0.04, tail=0.005)


def outcomes(before, after, windows=(180, 180), runs=60):
    """Of whole verdicts by the default criteria."""
    rng = np.random.default_rng(3)
    return Counter(
        judge(
            sample(rng, windows[0], **before), sample(rng, windows[1], **after), Criteria()
        ).outcome
        for _ in range(runs)
    )


@pytest.mark.parametrize("windows", [(180, 180), (60, 180)])
def test_a_migration_that_removed_the_tail_never_fails_and_nearly_always_passes(windows):
    before = {"steps": BAD, "deschedules": STALLED}

    found = outcomes(before, {"steps": GOOD}, windows)

    assert found[Outcome.FAIL] == 0
    assert found[Outcome.PASS] >= 0.9 * found.total()


def test_a_bad_machine_compared_with_itself_always_fails():
    bad = {"steps": BAD, "deschedules": STALLED}

    assert outcomes(bad, bad, (60, 60)) == {Outcome.FAIL: 60}


def test_a_good_machine_compared_with_itself_never_fails():
    assert outcomes({"steps": GOOD}, {"steps": GOOD})[Outcome.FAIL] == 0


def test_steps_that_became_a_little_slower_never_pass():
    slower = replace(GOOD, median=1.08 * GOOD.median, tail_from=1.08 * GOOD.tail_from)

    found = outcomes({"steps": GOOD}, {"steps": slower})

    assert found[Outcome.PASS] == 0
    assert found[Outcome.FAIL] >= 0.9 * found.total()


def test_heavy_tails_within_the_limit_never_fail():
    heavy = replace(DESCHEDULES, steepness=1.1, bursts=2.0, tail_from=2e-4)
    assert heavy.quantile(0.999) < 0.001

    found = outcomes({"steps": GOOD}, {"steps": GOOD, "deschedules": heavy})

    assert found[Outcome.FAIL] == 0
