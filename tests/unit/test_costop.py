"""Which CPUs stood still together, for how long, and whether that was chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.kernel.btf import wire
from tracer.ledger.costop import CoStops, chance, scope_of, together

MS, S = 1_000_000, 1_000_000_000
CPUS = 8


def stalled(cpu, due, end, *, alive=None, running=(), lost=None, **thread):
    """``struct stall`` of one CPU; times in ms."""
    row = np.zeros(1, wire().dtype("stall"))
    row["cpu"], row["due_ns"], row["end_ns"] = cpu, int(due * MS), int(end * MS)
    row["alive_ns"] = int((due - 1 if alive is None else alive) * MS)
    row["lost_ns"] = row["end_ns"] - row["due_ns"] if lost is None else lost * MS
    row["running"][0, 0] = sum(1 << other for other in running)
    for name, value in thread.items():
        row[name] = value
    return row


def found(*rows, cpus=CPUS, now=100):
    """What is complete after so many seconds."""
    batch = np.concatenate(rows)
    return CoStops(cpus, 0).add(batch, ["chat"] * len(batch), now * S)


def test_stalls_that_overlap_are_one_of_the_machine():
    (stall,) = found(stalled(3, 1001, 1300.2), stalled(0, 1000.5, 1300), stalled(5, 1000.8, 1300.6))

    assert stall.cpus == (0, 3, 5)
    assert stall.scope == "all"
    assert stall.end_ns == 1300 * MS


def test_the_begin_is_where_all_were_still_alive_and_none_had_missed_a_timer():
    late = stalled(0, 1000.9, 1300, alive=999.9), stalled(1, 1000.2, 1300, alive=999.2)

    (stall,) = found(*late)

    # Between 999.9, when CPU 0 was last seen, and 1000.2, when CPU 1 failed to show up.
    assert stall.begin_ns == pytest.approx(1000.05 * MS, abs=1000)
    assert stall.uncertain_ns == pytest.approx(0.15 * MS, abs=1000)


def test_of_cpus_that_slept_the_begin_is_not_known():
    (stall,) = found(stalled(0, 1000, 1300, alive=0))

    assert (stall.begin_ns, stall.uncertain_ns) == (1000 * MS, None)


def test_what_was_stolen_is_not_lost_as_well():
    both = [stalled(cpu, 1000, 1300, alive=0, stolen_ns=n * MS) for cpu, n in ((0, 40), (1, 50))]

    (stall,) = found(*both)

    assert stall.lost_ns == (300 - 40) * MS


def test_stalls_one_after_the_other_are_several():
    turns = [stalled(i % 2, 1000 + 4 * i, 1005 + 4 * i, running=[1 - i % 2]) for i in range(6)]

    stalls = found(*turns)

    assert [stall.cpus for stall in stalls] == [(i % 2,) for i in range(6)]
    assert {stall.scope for stall in stalls} == {"one"}


def test_a_short_stall_just_before_takes_no_cpu_of_a_long_one():
    early = [stalled(cpu, 994, 1000) for cpu in (1, 4)]
    long = stalled(2, 996, 1300, process=7, step=9), stalled(0, 1001, 1300), stalled(5, 1001, 1300)

    short, machine = found(*early, *long)

    assert short.cpus == (1, 4)
    assert (machine.cpus, [thread.step for thread in machine.hit]) == ((0, 2, 5), [9])


def test_a_cpu_whose_timer_was_due_late_stood_still_with_the_others():
    (stall,) = found(stalled(0, 1000, 1300), stalled(1, 1250, 1300.4))

    assert stall.cpus == (0, 1)


def test_what_came_back_first_did_not_run_meanwhile():
    first, second = stalled(0, 1000, 1300), stalled(1, 1000, 1304, running=[0, 2, 3])

    (stall,) = found(first, second)

    assert (stall.running, stall.scope) == ((), "all")


def test_a_cpu_that_stood_still_did_not_run_whatever_others_saw_of_it():
    (stall,) = found(stalled(0, 1000, 1300, running=[1, 2]), stalled(1, 1000, 1301))

    assert (stall.cpus, stall.running, stall.scope) == ((0, 1), (2,), "all_but_one")


@pytest.mark.parametrize(
    ("stalled_cpus", "running", "cpus", "scope"),
    [
        (1, 7, 8, "one"),
        (1, 1, 8, "one"),
        (1, 0, 8, "unknown"),
        (1, 0, 1, "all"),
        (3, 5, 8, "some"),
        (7, 1, 8, "all_but_one"),
        (8, 0, 8, "all"),
        (2, 0, 8, "all"),
    ],
)
def test_the_scope_is_of_the_cpus_that_could_tell(stalled_cpus, running, cpus, scope):
    assert scope_of(stalled_cpus, running, cpus) == scope


def test_the_steps_that_it_hit_are_those_that_were_on_the_cpus():
    on_cpu = {"process": 1, "tgid": 70, "tid": 71, "step": 979}

    (stall,) = found(stalled(0, 1000, 1300, **on_cpu), stalled(1, 1000, 1300))

    (thread,) = stall.hit
    assert (thread.tenant, thread.pid, thread.tid, thread.step) == ("chat", 70, 71, 979)
    assert (thread.cpu, thread.lost_ns) == (0, 300 * MS)


def test_short_stalls_do_not_make_long_ones_meet_by_chance():
    short = [stalled(i % 2, 10 * i + 1, 10 * i + 3) for i in range(200)]
    long = stalled(0, 5000, 5300), stalled(1, 5000, 5300)

    *_, stall = found(*short, *long, now=10)

    assert stall.cpus == (0, 1)
    assert stall.chance < 1e-3


def test_a_step_that_is_not_known_has_no_number():
    (stall,) = found(stalled(0, 1000, 1300, process=1, step=2**64 - 1))

    assert [thread.step for thread in stall.hit] == [0]


def test_stalls_are_held_until_stragglers_are_there():
    co_stops = CoStops(CPUS, 0)

    assert co_stops.add(stalled(0, 1000, 1300), [""], int(1.5 * S)) == []
    assert co_stops.add(stalled(1, 1000, 1302), [""], int(2.2 * S)) == []
    (stall,) = co_stops.add(np.zeros(0, wire().dtype("stall")), [], 3 * S)
    assert stall.cpus == (0, 1)
    assert co_stops.add(np.zeros(0, wire().dtype("stall")), [], 9 * S) == []


def test_at_the_end_nothing_is_held():
    (stall,) = CoStops(CPUS, 0).add(stalled(0, 1000, 1300), [""], int(1.3 * S), last=True)

    assert stall.scope == "unknown"


def test_all_cpus_at_once_are_no_chance_and_one_alone_is_no_coincidence():
    rates = np.full(CPUS, 1 / S)  # each CPU once a second

    assert chance(rates, [2], MS) == 1
    assert chance(rates, list(range(CPUS)), MS) < 1e-12
    assert chance(rates, [0, 1], 500 * MS) > 0.9


@pytest.mark.parametrize("cpus", [[0, 1], [0, 1, 2], [0, 3, 5, 7]])
def test_chance_is_how_often_independent_cpus_do_it(cpus):
    rng = np.random.default_rng(1)
    window, each = 2 * MS, 20 / S
    # Of 200,000 moments: how many other CPUs come back within the window around each.
    together = rng.poisson(each * 2 * window, (200_000, CPUS - 1)) > 0
    share = (together.sum(axis=1) >= len(cpus) - 1).mean()

    estimate = chance(np.full(CPUS, each), cpus, window)

    assert estimate == pytest.approx(share, rel=0.05)


def test_chance_of_cpus_that_never_stalled_is_none():
    assert chance(np.zeros(CPUS), [0, 1], MS) == 0


spans = st.builds(
    lambda cpu, due, length: stalled(cpu, due, due + length),
    cpu=st.integers(0, CPUS - 1),
    due=st.integers(1, 200),
    length=st.integers(1, 50),
)


@settings(deadline=None)
@given(st.lists(spans, min_size=1))
def test_each_stall_of_a_cpu_is_in_one_of_the_machine(rows):
    batch = np.concatenate(rows)

    groups = together(batch)

    assert sorted(row for group in groups for row in group) == list(range(len(batch)))
    for group in groups:
        assert len(set(batch["cpu"][group])) == len(group)
        assert batch["due_ns"][group].max() < batch["end_ns"][group].min()
