"""The ranking: which tier carries the tail, and what work on lower ones could gain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer import catalog
from tracer.host.facts import Known, Unknown
from tracer.judge.tiers import TIERS, as_lines, rank
from tracer.ledger.summary import StepRow

MS = 1_000_000
BLIND = {"steal": "VMware's is off", "stall": "not measured yet"}


def by_cause(**ms):
    return {cause.name: ms.get(cause.name, 0) / 1e3 for cause in catalog.CAUSES}


def row(typical, tail):
    """A kind of step of which a typical and a tail step have these ledgers, in ms."""
    return StepRow(
        tenant="chat",
        step="decode",
        is_stage=False,
        count=1000,
        p50=0.1,
        p99=0.5,
        p999=0.5,
        seconds={},
        typical=by_cause(**typical),
        tail=by_cause(**tail),
        tail_count=10,
    )


SCENARIO = row({"running": 157}, {"running": 160, "stall": 380, "steal": 20, "preempted": 12})


def test_the_hypervisor_carries_the_scenario_s_tail():
    ranking = rank(SCENARIO)

    assert 0 == ranking.carrier.number
    assert Known(400 * MS) == ranking.tiers[0].ns
    assert Known(12 * MS) == ranking.tiers[1].ns
    assert 415 * MS == ranking.longer_ns


def test_work_below_the_carrier_gains_at_most_its_measured_time_and_what_hides_in_running():
    assert (12 + 3) * MS == rank(SCENARIO).below_at_most_ns


def test_a_quota_in_place_of_the_stall_is_tier_1():
    ranking = rank(row({"running": 157}, {"running": 158, "quota": 300, "rt_limit": 20}))

    assert 1 == ranking.carrier.number
    assert (0, 320 * MS) == (ranking.tiers[0].ns.value, ranking.tiers[1].ns.value)


def test_the_highest_tier_that_carries_comes_first_though_a_lower_one_is_larger():
    assert 0 == rank(row({}, {"steal": 30, "preempted": 70})).carrier.number
    assert 1 == rank(row({}, {"steal": 20, "preempted": 80})).carrier.number


def test_tiers_that_are_not_measured_have_bounds_and_what_they_rest_on():
    for each in rank(SCENARIO).tiers[3:]:
        assert Unknown("not measured: inside of running") == each.ns
        assert 0 < each.at_most_ns <= 3 * MS
        assert each.basis

    assert 5_000 == rank(SCENARIO).tiers[4].at_most_ns


PULLED = row({"running": 20}, {"running": 22, "fault": 30, "numa_migrate": 95})


def test_pages_that_balancing_moves_are_placement_with_a_bound_for_remote_accesses():
    ranking = rank(PULLED)
    placement = ranking.tiers[2]

    assert placement.tier is ranking.carrier
    assert Known(95 * MS, "without remote accesses: inside of running") == placement.ns
    assert (95 + 32) * MS == placement.at_most_ns
    assert "95.0 ms   75 %" in list(as_lines(ranking))[3]


def test_a_tail_that_only_runs_longer_says_what_remote_accesses_may_have_of_it():
    assert next(as_lines(rank(row({"running": 100}, {"running": 140, "lock": 1})))) == (
        "chat decode: the tail is 41.0 ms longer than the median, carried by no tier: "
        "most is running, 40.0 ms, of it remote accesses at most 40.0 ms"
    )


def test_where_nobody_tells_of_moved_pages_placement_is_inside_of_others():
    placement = rank(row({}, {"running": 100}), {"numa_migrate": "no fentry"}).tiers[2]

    assert "numa_migrate: no fentry; remote accesses: inside of running" == placement.ns.reason
    assert 68 * MS == placement.at_most_ns


def test_no_bound_exceeds_what_running_took_longer():
    ranking = rank(row({"running": 100}, {"running": 100, "stall": 400}))

    assert {0} == {each.at_most_ns for each in ranking.tiers[2:]}


def test_remote_memory_is_at_most_two_thirds_of_running():
    (placement, latency) = rank(row({}, {"running": 100, "fault": 10})).tiers[2:4]

    assert (78 * MS, 68 * MS) == (placement.at_most_ns, latency.at_most_ns)


def test_a_hypervisor_that_cannot_be_told_may_be_all_of_running():
    ranking = rank(row({"running": 157}, {"running": 557, "preempted": 10}), BLIND)

    assert Unknown("steal: VMware's is off; stall: not measured yet") == ranking.tiers[0].ns
    assert 400 * MS == ranking.tiers[0].at_most_ns
    assert ranking.carrier is None


def test_one_cause_that_cannot_be_told_leaves_the_other():
    tier = rank(SCENARIO, {"steal": "off"}).tiers[0]

    assert Known(380 * MS, "without steal: off") == tier.ns
    assert 383 * MS == tier.at_most_ns


def test_bare_metal_has_no_hypervisor_that_cannot_be_told():
    no_clock = {"steal": "no hypervisor that could steal"}
    ranking = rank(row({"running": 1}, {"running": 9}), no_clock, bare_metal=True)

    assert (Known(0), 0) == (ranking.tiers[0].ns, ranking.tiers[0].at_most_ns)


def test_on_bare_metal_a_stall_is_the_firmwares_or_has_interrupts_off():
    ranking = rank(row({"running": 1}, {"running": 1, "stall": 9}), bare_metal=True)

    assert "carried by tier 0, firmware, or interrupts off: 9.00 ms" in next(as_lines(ranking))


def test_waits_for_others_are_of_no_tier():
    ranking = rank(row({"lock": 1, "running": 10}, {"lock": 91, "running": 11}))

    assert ranking.carrier is None
    assert 90 * MS == ranking.elsewhere_ns["lock"]
    assert next(as_lines(ranking)) == (
        "chat decode: the tail is 91.0 ms longer than the median, carried by no tier: "
        "most is waiting for a lock, 90.0 ms"
    )


def test_the_verdict_names_tier_time_and_the_gain_of_lower_ones():
    first, *tiers = as_lines(rank(SCENARIO))

    assert first == (
        "chat decode: the tail is 415 ms longer than the median, carried by tier 0, hypervisor: "
        "400 ms; work on lower tiers gains at most 15.0 ms"
    )
    assert len(TIERS) == len(tiers)
    assert tiers[0].split() == ["0", "hypervisor", "400", "ms", "96", "%"]
    assert "not measured: inside of running; measured for another engine" in tiers[4]


def test_steps_all_alike_have_no_tail():
    ranking = rank(row({"running": 10}, {"running": 10}))

    assert ranking.carrier is None
    assert "no tail" in next(as_lines(ranking))


ledgers = st.fixed_dictionaries({c.name: st.integers(0, 10_000) for c in catalog.CAUSES})


@given(ledgers, ledgers)
def test_tiers_and_the_rest_sum_to_what_the_tail_takes_longer(typical, tail):
    ranking = rank(row(typical, tail))

    measured = sum(each.ns.value for each in ranking.tiers if isinstance(each.ns, Known))
    assert ranking.longer_ns == measured + sum(ranking.elsewhere_ns.values())


def test_every_deschedule_is_of_a_tier_above_placement():
    assert set(catalog.DESCHEDULES) == {cause for tier in TIERS[:2] for cause in tier.causes}


@pytest.mark.parametrize("tier", TIERS)
def test_tiers_are_numbered_in_order(tier):
    assert TIERS.index(tier) == tier.number
