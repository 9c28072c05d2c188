"""What steps and deschedules add up to, and what is exported of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tracer import catalog
from tracer.catalog import DESCHEDULES
from tracer.kernel.btf import wire
from tracer.ledger.books import CAUSE_AT
from tracer.ledger.families import families
from tracer.ledger.histogram import BUCKETS, EDGES_SECONDS, bucket_of
from tracer.ledger.summarise import summarise
from tracer.ledger.totals import MAX_KINDS, Totals
from tracer.model import Names, Steps

MS = 1_000_000
S = 1_000 * MS
PIECE = wire().dtype("piece")
SHARES = 8


def comms(runners):
    return [comm.decode() for comm in runners["comm"]]


@pytest.fixture
def names():
    return Names(kinds=["decode", "prefill"], tenants=["chat", "batch", "search"])


@pytest.fixture
def totals(names):
    return Totals(names, comms, 0, cannot_tell={})


def minor_faults(n):
    return [n if event.name == "fault_minor" else 0 for event in catalog.EVENTS]


NO_EVENTS = minor_faults(0)


def steps(
    elapsed_ms,
    *,
    kind=0,
    tenants=(0,),
    weights=(1,),
    end_ns=S,
    parent=0,
    events=NO_EVENTS,
    **causes_ms,
):
    """Steps that are alike but for their wall time; what ``causes_ms`` leaves is running."""
    elapsed = np.array(elapsed_ms, float) * MS
    n = len(elapsed)
    ns = np.zeros((n, len(catalog.CAUSES)), np.int64)
    for cause, ms in causes_ms.items():
        ns[:, CAUSE_AT[cause]] = ms * MS
    ns[:, 0] = elapsed - ns.sum(axis=1)
    tenant, share = np.full((n, SHARES), -1, np.int32), np.zeros((n, SHARES))
    tenant[:, : len(tenants)] = tenants
    share[:, : len(tenants)] = np.array(weights) / sum(weights)
    number, zeros = np.arange(n, dtype=np.uint64) + 1, np.zeros(n, np.int64)
    return Steps(
        target=np.ones(n, np.uint32),
        tid=np.full(n, 77, np.uint32),
        slot=np.zeros(n, np.uint32),
        number=number,
        parent=np.full(n, parent, np.uint64),
        kind=np.full(n, kind, np.int32),
        tenant=tenant,
        share=share,
        begin_ns=(end_ns - elapsed).astype(np.int64),
        end_ns=np.full(n, end_ns, np.int64),
        ns=ns,
        switches=np.zeros(n, np.uint32),
        involuntary=np.zeros(n, np.uint32),
        migrations=np.zeros(n, np.uint32),
        events=np.tile(events, (n, 1)),
        helper_wait_ns=zeros.copy(),
        helper_worst_ns=zeros.copy(),
        worst=np.zeros(n, PIECE["worst"]),
        aggressors=np.zeros((n, 6), PIECE["aggressors"].base),
        blame_rest_ns=zeros.copy(),
    )


def rows(totals, metric, now_ns=S):
    found = {family.metric: family for family in families(totals, now_ns, 0.0)}
    return found[metric].rows


def blamed(of, *runners):
    """``of`` with (comm, tid, ms) as the aggressors of each step."""
    for i, (comm, tid, ms) in enumerate(runners):
        of.aggressors["who"]["comm"][:, i] = comm.encode()
        of.aggressors["who"]["tid"][:, i] = tid
        of.aggressors["ns"][:, i] = ms * MS
    return of


# Steps.


def test_a_step_is_counted_for_each_tenant_it_served_and_its_time_split(totals):
    totals.add_steps(steps([10], tenants=(0, 1), weights=(9, 1), lock=2), S)

    elapsed = rows(totals, catalog.STEP_ELAPSED)
    seconds = rows(totals, catalog.STEP_SECONDS)
    assert {labels: histogram.counts.sum() for labels, histogram in elapsed.items()} == {
        ("chat", "decode"): 1,
        ("batch", "decode"): 1,
    }
    assert math.isclose(0.0018, seconds["chat", "decode", "lock"])
    assert math.isclose(0.0002, seconds["batch", "decode", "lock"])
    assert math.isclose(0.010, sum(seconds.values()))


def test_events_are_counted_by_tenant_in_steps_and_out_of_them_and_stages_not_twice(totals):
    totals.add_steps(steps([10], tenants=(0, 1), weights=(3, 1), events=minor_faults(8)), S)
    totals.add_steps(steps([5], kind=1, parent=1, events=minor_faults(100)), S)
    pieces = np.zeros(1, PIECE)
    pieces["events"] = minor_faults(5)
    totals.add_outside(pieces, np.array([1], np.int32))

    assert rows(totals, catalog.PAGE_FAULTS) == {
        ("chat", "minor"): 6,
        ("chat", "major"): 0,
        ("batch", "minor"): 7,
        ("batch", "major"): 0,
    }


def test_events_that_cannot_be_told_have_no_row(names):
    totals = Totals(names, comms, 0, cannot_tell={"fault count": "no such counter"})
    totals.add_steps(steps([10], events=minor_faults(8)), S)

    assert rows(totals, catalog.PAGE_FAULTS) == {}


def test_a_histograms_sum_is_the_wall_time_and_its_edges_hold_what_is_below(totals):
    totals.add_steps(steps([1, 2, 40]), S)

    histogram = rows(totals, catalog.STEP_ELAPSED)["chat", "decode"]

    assert math.isclose(0.043, histogram.sum)
    below = histogram.counts.cumsum()[:-1]
    assert_array_equal([sum(s < e for s in (0.001, 0.002, 0.040)) for e in EDGES_SECONDS], below)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.floats(0.01, 1000), min_size=1, max_size=20),
            st.integers(0, 1),
            st.lists(st.sampled_from([0, 1, 2]), min_size=1, max_size=3, unique=True),
        ),
        min_size=1,
        max_size=50,
    )
)
def test_parts_sum_to_the_steps_however_they_are_batched(batches):
    names = Names(kinds=["decode", "prefill"], tenants=["chat", "batch", "search"])
    totals = Totals(names, comms, 0, cannot_tell={})
    for elapsed, kind, tenants in batches:
        totals.add_steps(steps(elapsed, kind=kind, tenants=tenants, weights=[1] * len(tenants)), S)

    wall = sum(sum(elapsed) for elapsed, _, _ in batches) / 1000
    assert_allclose(sum(rows(totals, catalog.STEP_SECONDS).values()), wall, rtol=1e-5)
    counted = sum(h.counts.sum() for h in rows(totals, catalog.STEP_ELAPSED).values())
    assert sum(len(elapsed) * len(tenants) for elapsed, _, tenants in batches) == counted


def test_tenants_beyond_the_cap_are_other_and_one_step_counts_once_there(names):
    totals = Totals(names, comms, 0, cannot_tell={}, max_tenants=1)
    totals.add_steps(steps([10]), S)

    totals.add_steps(steps([10], tenants=(1, 2), weights=(1, 1)), S)

    elapsed = rows(totals, catalog.STEP_ELAPSED)
    assert {labels: histogram.counts.sum() for labels, histogram in elapsed.items()} == {
        ("chat", "decode"): 1,
        ("other", "decode"): 1,
    }
    seconds = rows(totals, catalog.STEP_SECONDS)
    assert math.isclose(0.010, seconds["other", "decode", "running"])


def test_a_tenant_of_the_name_other_is_the_same_row(names):
    names.tenants.append("other")
    totals = Totals(names, comms, 0, cannot_tell={}, max_tenants=1)

    totals.add_steps(steps([10], tenants=(0, 1, 3), weights=(1, 1, 1)), S)

    labels = sorted(rows(totals, catalog.STEP_ELAPSED))
    assert labels == [("chat", "decode"), ("other", "decode")]


def test_kinds_beyond_the_cap_are_other(totals, names):
    names.kinds += [f"kind {i}" for i in range(200)]
    for kind in range(len(names.kinds)):
        totals.add_steps(steps([1], kind=kind), S)

    elapsed = rows(totals, catalog.STEP_ELAPSED)

    assert len(elapsed) == MAX_KINDS + 1
    assert len(names.kinds) - MAX_KINDS == elapsed["chat", "other"].counts.sum()


def test_which_kinds_are_stages_of_others_is_told(totals):
    totals.add_steps(steps([10]), S)
    totals.add_steps(steps([4], kind=1, parent=1), S)

    of_kind = {step: stage for (_, step), stage in rows(totals, catalog.STEP_IS_STAGE).items()}
    assert of_kind == {"decode": 0, "prefill": 1}


def test_a_counter_never_falls_and_the_overlap_is_counted(totals):
    totals.add_steps(steps([10], sleep=11, running=0, unexplained=-1), S)

    assert rows(totals, catalog.STEP_SECONDS)["chat", "decode", "unexplained"] == 0
    assert totals.lost["ledger_beyond_step"] == 1


def test_a_cause_that_cannot_be_told_has_no_row(names):
    totals = Totals(names, comms, 0, cannot_tell={"steal": "no steal clock"})
    totals.add_steps(steps([10]), S)
    totals.add_deschedules(["chat"], np.zeros((1, 6, BUCKETS + 1), np.uint64), S)

    assert ("chat", "decode", "steal") not in rows(totals, catalog.STEP_SECONDS)
    assert ("chat", "steal") not in rows(totals, catalog.DESCHEDULE)
    assert ("chat", "quota") in rows(totals, catalog.DESCHEDULE)


def test_steal_that_is_seen_after_all_can_be_told(names):
    totals = Totals(names, comms, 0, cannot_tell={"steal": "none since boot"})
    totals.add_steps(steps([10], steal=4, running=6), S)

    assert rows(totals, catalog.STEP_SECONDS)["chat", "decode", "steal"] > 0
    assert totals.cannot_tell == {}


# The window.


def test_the_ratio_is_that_of_the_window(totals):
    totals.add_steps(steps([500] * 10), 1 * S)
    totals.add_steps(steps([10] * 1500 + [40] * 2), 30 * S)

    of_both = rows(totals, catalog.STEP_RATIO, 40 * S)["chat", "decode"]
    of_second = rows(totals, catalog.STEP_RATIO, 70 * S)["chat", "decode"]

    assert abs(of_both - 50) <= 50 * 2 / 64
    assert abs(of_second - 4) <= 4 * 2 / 64
    assert rows(totals, catalog.STEP_RATIO, 100 * S) == {}


def test_recent_rows_are_those_of_the_window_with_their_whole_ledgers(totals):
    totals.add_steps(steps([500] * 10), 1 * S)
    totals.add_steps(steps([10] * 1500 + [40] * 2, lock=4, tenants=(0, 1)), 30 * S)

    first, _ = summarise(totals, {}, 70 * S).recent

    assert (first.tenant, first.step, first.is_stage, first.count) == (
        "chat",
        "decode",
        False,
        1502,
    )
    assert_allclose([first.p50, first.p999], [0.010, 0.040], rtol=1 / 64)
    assert_allclose([first.seconds["lock"], first.seconds["running"]], [6.008, 9.072])
    assert summarise(totals, {}, 100 * S).recent == ()


def test_deschedules_are_cumulative_and_their_p999_is_of_the_window(totals):
    table = np.zeros((2, len(DESCHEDULES), BUCKETS + 1), np.uint64)
    preempted, runqueue = DESCHEDULES.index("preempted"), DESCHEDULES.index("runqueue")
    table[0, preempted, [bucket_of(400 * MS), BUCKETS]] = 1, 400 * MS
    totals.add_deschedules(["chat"], table, 1 * S)
    table[0, runqueue, [bucket_of(5 * MS), BUCKETS]] = 10, 50 * MS
    table[1, 0, bucket_of(1 * MS)], table[1, 0, BUCKETS] = 3, 3 * MS
    totals.add_deschedules(["chat", "batch"], table, 30 * S)

    p999 = {at: rows(totals, catalog.DESCHEDULE_P999, at * S)["chat",] for at in (40, 70)}
    assert abs(p999[40] - 0.4) <= 0.4 / 64
    assert abs(p999[70] - 0.005) <= 0.005 / 64
    by_cause = rows(totals, catalog.DESCHEDULE, 70 * S)
    seen = {labels: (h.counts.sum(), h.sum) for labels, h in by_cause.items() if h.sum}
    assert seen.pop(("chat", "preempted")) == (1, 0.4)
    assert seen == {("chat", "runqueue"): (10, 0.05), ("batch", "steal"): (3, 0.003)}
    counts = rows(totals, catalog.DESCHEDULE_WINDOW_COUNT, 70 * S)
    assert counts == {("chat",): 10, ("batch",): 3}


def test_queue_waits_are_counted_by_tenant(totals):
    totals.add_queue_waits(np.array([0, 1, 0], np.int32), np.array([MS, 2 * MS, 3 * MS]))

    waits = rows(totals, catalog.QUEUE_WAIT)

    assert {
        labels: (histogram.counts.sum(), histogram.sum) for labels, histogram in waits.items()
    } == {("chat",): (2, 0.004), ("batch",): (1, 0.002)}


# Blame.


def test_blame_is_split_by_cause_and_its_total_is_what_the_victim_wanted(totals):
    of = blamed(steps([20], preempted=6, runqueue=2), ("grpc", 5, 4), ("nginx", 6, 2))
    of.blame_rest_ns[:] = 2 * MS
    totals.add_steps(of, S)

    blame = rows(totals, catalog.BLAME)

    assert math.isclose(0.003, blame["chat", "grpc", "preempted"])
    assert math.isclose(0.001, blame["chat", "grpc", "runqueue"])
    assert math.isclose(0.0015, blame["chat", "nginx", "preempted"])
    assert math.isclose(0.0015, blame["chat", "other", "preempted"])
    assert math.isclose(0.008, sum(blame.values()))


def test_threads_of_one_name_are_one_aggressor_and_victims_share_a_step(totals):
    of = steps([20], tenants=(0, 1), weights=(3, 1), preempted=8)
    totals.add_steps(blamed(of, ("grpc", 5, 6), ("grpc", 6, 2)), S)

    blame = rows(totals, catalog.BLAME)

    assert math.isclose(0.006, blame["chat", "grpc", "preempted"])
    assert math.isclose(0.002, blame["batch", "grpc", "preempted"])


def test_stages_are_not_blamed_twice(totals):
    totals.add_steps(blamed(steps([20], preempted=8), ("grpc", 5, 8)), S)
    totals.add_steps(blamed(steps([20], preempted=8, parent=1), ("grpc", 5, 8)), S)

    assert rows(totals, catalog.BLAME) == {("chat", "grpc", "preempted"): 0.008}


def test_a_hypervisor_and_a_quota_are_aggressors(totals):
    totals.add_steps(steps([20], steal=3, quota=4), S)

    assert rows(totals, catalog.BLAME) == {
        ("chat", "hypervisor", "steal"): 0.003,
        ("chat", "cpu quota", "quota"): 0.004,
    }


def test_threads_in_no_step_are_victims_too(totals):
    pieces = np.zeros(1, PIECE)
    pieces["ns"][:, CAUSE_AT["runqueue"]] = 5 * MS
    pieces["aggressors"]["who"]["comm"][:, 0], pieces["aggressors"]["ns"][:, 0] = b"grpc", 5 * MS

    totals.add_outside(pieces, np.array([1], np.int32))

    assert rows(totals, catalog.BLAME) == {("batch", "grpc", "runqueue"): 0.005}
    assert summarise(totals, {}, S).outside["batch"]["runqueue"] == 0.005


def test_aggressors_beyond_the_cap_are_other(totals):
    for i in range(300):
        totals.add_steps(blamed(steps([2], preempted=1), (f"thread {i}", i, 1)), S)

    blame = rows(totals, catalog.BLAME)

    assert len(blame) <= 201
    assert math.isclose(0.300, sum(blame.values()))


# The slowest.


def test_the_slowest_of_a_kind_are_kept_whole_for_the_window(totals):
    totals.add_steps(steps(range(1, 101), end_ns=S, lock=1), S)
    totals.add_steps(steps([7], kind=1, end_ns=2 * S), 2 * S)
    totals.add_steps(steps([3], end_ns=59 * S), 59 * S)

    kept = totals.slowest.steps(60 * S)
    later = totals.slowest.steps(61 * S)

    assert_array_equal([*range(100, 80, -1), 7], kept.elapsed_ns / MS)
    assert (kept.ns[:20, CAUSE_AT["lock"]] == MS).all()
    assert_array_equal([7, 3], later.elapsed_ns / MS)


def test_an_exemplar_names_the_slow_step_and_when_it_ended(totals):
    totals.add_steps(steps([10, 500], end_ns=4 * S), 5 * S)

    (family,) = (f for f in families(totals, 5 * S, 1000.0) if f.metric is catalog.STEP_ELAPSED)

    first = family.exemplars["chat", "decode"][0]
    assert (first.value, first.unix_seconds) == (0.5, 999.0)
    assert first.labels == {"step_number": "2", "tid": "77"}


# The summary.


def test_the_tail_is_what_slow_steps_have_more_than_median_ones(totals):
    totals.add_steps(steps([10] * 990), S)
    totals.add_steps(steps([50] * 10, preempted=30, lock=5), S)

    (row,) = summarise(totals, {}, S).rows

    assert (row.count, row.tail_count) == (1000, 10)
    assert {cause: s for cause, s in row.typical.items() if s} == {"running": 0.010}
    tail = {cause: round(s, 6) for cause, s in row.tail.items() if s}
    assert tail == {"running": 0.015, "preempted": 0.030, "lock": 0.005}


def test_a_summary_of_nothing_is_empty(totals):
    summary = summarise(totals, totals.lost, 3 * S)

    assert (summary.seconds, summary.steps, summary.rows, summary.slowest) == (3.0, 0, (), ())
