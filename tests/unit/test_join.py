"""The join of marks and kernel pieces, one rule at a time. Times are in ns."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tracer.kernel.btf import wire
from tracer.ledger.books import CAUSE_AT, MAX_DEPTH, PageNames
from tracer.ledger.counts import EVENT_AT
from tracer.ledger.join import MARKS, PIECES, Join

PIECE = wire().dtype("piece")
MARK = np.dtype([*wire().dtype("stepmark_done").descr, ("target", "u4"), ("slot", "u4")])
NO_MARKS, NO_PIECES = np.zeros(0, MARK), np.zeros(0, PIECE)
HOLD = 2_000


def mark(number, begin, end, *, parent=0, target=1, slot=0, kind=0, shares=()):
    done = np.zeros(1, MARK)
    done["number"], done["parent"], done["kind"] = number, parent, kind
    done["begin_ns"], done["end_ns"] = begin, end
    done["target"], done["slot"], done["nr_shares"] = target, slot, len(shares)
    for i, share in enumerate(shares):
        done["shares"][0, i] = share
    return done


def piece(step, begin, until, *, target=1, slot=0, tail_steal=0, tail_stall=0, **causes):
    piece = np.zeros(1, PIECE)
    piece["step"], piece["from_ns"], piece["until_ns"] = step, begin, until
    piece["process"], piece["slot"], piece["tid"] = target, slot, 77
    piece["tail_steal_ns"], piece["tail_stall_ns"] = tail_steal, tail_stall
    for cause, ns in causes.items():
        piece["ns"][0, CAUSE_AT[cause]] = ns
    return piece


WATCHED = piece(0, 1, 1)
"""The first piece of the thread in slot 0: the kernel side sees it from now on."""


def ledger(steps, row=0):
    return {name: int(steps.ns[row, at]) for name, at in CAUSE_AT.items() if steps.ns[row, at]}


@pytest.fixture
def lost():
    return Counter()


@pytest.fixture
def names():
    return PageNames(np.zeros((8, 256), np.int32), np.zeros((8, 256), np.int32))


@pytest.fixture
def join(lost, names):
    return Join(names, lost, hold_ns=HOLD)


# When a step is closed.


def test_a_step_is_held_until_a_piece_that_begins_at_its_end_or_later_has_arrived(join):
    first = join.drain(mark(1, 100, 200), np.concatenate([WATCHED, piece(1, 100, 150)]), 300)
    second = join.drain(NO_MARKS, piece(2, 199, 250), 300)
    third = join.drain(NO_MARKS, piece(0, 200, 200), 300)

    assert [len(c.steps) for c in (first, second, third)] == [0, 0, 1]


def test_a_step_without_further_events_is_closed_after_the_hold(join):
    assert len(join.drain(mark(1, 100, 200), WATCHED, 199 + HOLD).steps) == 0

    assert ledger(join.drain(NO_MARKS, NO_PIECES, 200 + HOLD).steps) == {"running": 100}


def test_a_piece_of_another_thread_closes_nothing(join):
    pieces = np.concatenate([WATCHED, piece(9, 500, 600, slot=1), piece(9, 500, 600, target=2)])

    assert len(join.drain(mark(1, 100, 200), pieces, 700).steps) == 0


def test_stages_wait_for_their_step(join):
    early = join.drain(
        mark(2, 120, 150, parent=1), np.concatenate([WATCHED, piece(1, 150, 160)]), 170
    )
    late = join.drain(mark(1, 100, 200), piece(0, 200, 200), 300)

    assert len(early.steps) == 0
    assert_array_equal([2, 1], late.steps.number)


def test_a_target_that_is_gone_is_closed_at_once_and_forgotten(join):
    gone = join.drain(mark(1, 100, 200), WATCHED, 300, ended=[1])
    successor = join.drain(mark(1, 400, 500), NO_PIECES, 600, ended=[1])

    assert ledger(gone.steps) == {"running": 100}
    assert ledger(successor.steps) == {"unexplained": 100}


# What the ledger says.


def test_after_the_last_event_the_thread_ran_to_the_end_of_the_span(join):
    events = piece(1, 100, 150, running=20, lock=30, tail_steal=15)

    steps = join.drain(mark(1, 100, 200), np.concatenate([WATCHED, events]), 300, ended=[1]).steps

    assert ledger(steps) == {"running": 20 + 35, "lock": 30, "steal": 15}


def test_a_stage_has_its_own_ledger_and_its_step_includes_it(join):
    marks = np.concatenate([mark(2, 120, 160, parent=1), mark(1, 100, 200)])
    pieces = [
        piece(1, 100, 110, runqueue=10),
        piece(2, 120, 130, io=10),
        piece(1, 160, 190, net=30),
    ]

    steps = join.drain(marks, np.concatenate([WATCHED, *pieces]), 300, ended=[1]).steps

    assert_array_equal([2, 1], steps.number)
    assert ledger(steps, 0) == {"io": 10, "running": 30}
    assert ledger(steps, 1) == {"io": 10, "running": 50, "runqueue": 10, "net": 30}


def test_a_thread_that_was_never_seen_is_unexplained_in_full(join):
    steps = join.drain(mark(1, 100, 200), NO_PIECES, 300, ended=[1]).steps

    assert ledger(steps) == {"unexplained": 100}
    assert_array_equal([0], steps.tid)


def test_what_ended_before_the_thread_was_watched_is_unexplained(join):
    marks = np.concatenate([mark(1, 100, 200), mark(2, 250, 300), mark(3, 400, 500)])

    steps = join.drain(marks, piece(2, 260, 280, running=20), 600, ended=[1]).steps

    assert ledger(steps, 0) == {"unexplained": 100}
    assert ledger(steps, 1) == {"unexplained": 10, "running": 40}
    assert ledger(steps, 2) == {"running": 100}


def test_time_outside_of_steps_watches_from_its_last_event_on(join):
    """Before the page was found, steps looked like time outside of steps."""
    marks = np.concatenate([mark(1, 100, 200), mark(2, 300, 400)])

    steps = join.drain(marks, piece(0, 50, 250, running=200), 600, ended=[1]).steps

    assert [ledger(steps, 0), ledger(steps, 1)] == [{"unexplained": 100}, {"running": 100}]


def test_a_piece_that_reaches_beyond_its_span_leaves_a_negative_remainder(join):
    pieces = np.concatenate([WATCHED, piece(1, 100, 230, sleep=130)])

    steps = join.drain(mark(1, 100, 200), pieces, 300, ended=[1]).steps

    assert ledger(steps) == {"sleep": 130, "unexplained": -30}


def test_an_interrupt_between_taking_a_boundarys_time_and_writing_it_is_booked_once(join):
    marks = np.concatenate([mark(2, 120, 150, parent=1), mark(1, 100, 200)])
    pieces = [piece(2, 120, 170, preempted=40, running=10), piece(0, 200, 210)]

    steps = join.drain(marks, np.concatenate([WATCHED, *pieces]), 300, ended=[1]).steps

    assert ledger(steps, 0) == {"preempted": 40, "running": 10, "unexplained": -20}
    assert ledger(steps, 1) == {"preempted": 40, "running": 60}


def test_an_interrupt_in_the_writing_of_a_mark_belongs_to_that_mark(join, lost):
    marks = np.concatenate([mark(2, 120, 200, parent=1), mark(1, 100, 300)])
    torn = piece(2**64 - 1, 110, 180, running=15, preempted=55)
    pieces = [piece(1, 100, 110, io=10), torn, piece(1, 200, 250, net=50)]

    steps = join.drain(marks, np.concatenate([WATCHED, *pieces]), 400, ended=[1]).steps

    assert ledger(steps, 0) == {"preempted": 55, "running": 5 + 20}
    assert ledger(steps, 1) == {"io": 10, "preempted": 55, "running": 10 + 5 + 20 + 50, "net": 50}
    assert not +lost


def test_steal_beyond_the_time_on_the_cpu_is_counted(join, lost):
    pieces = np.concatenate([WATCHED, piece(1, 100, 190, lock=90, tail_steal=25)])

    steps = join.drain(mark(1, 100, 200), pieces, 300, ended=[1]).steps

    assert ledger(steps) == {"lock": 90, "steal": 10}
    assert Counter(steal_unplaced=1) == +lost


def test_a_stall_after_the_last_event_is_the_steps(join, lost):
    pieces = np.concatenate([WATCHED, piece(1, 100, 120, lock=20, tail_steal=30, tail_stall=40)])

    steps = join.drain(mark(1, 100, 200), pieces, 300, ended=[1]).steps

    assert ledger(steps) == {"lock": 20, "steal": 30, "stall": 40, "running": 10}
    assert not +lost


def test_a_stall_beyond_the_time_on_the_cpu_is_counted(join, lost):
    pieces = np.concatenate([WATCHED, piece(1, 100, 180, lock=80, tail_steal=15, tail_stall=25)])

    steps = join.drain(mark(1, 100, 200), pieces, 300, ended=[1]).steps

    assert ledger(steps) == {"lock": 80, "steal": 15, "stall": 5}
    assert Counter(stall_unplaced=1) == +lost


def test_one_aggressor_in_two_pieces_is_one_aggressor(join):
    marks = np.concatenate([mark(2, 120, 160, parent=1), mark(1, 100, 200)])
    first, second = piece(1, 100, 110), piece(2, 120, 130)
    first["aggressors"]["who"]["tid"][0, :2], first["aggressors"]["ns"][0, :2] = (5, 6), (8, 2)
    second["aggressors"]["who"]["tid"][0, 0], second["aggressors"]["ns"][0, 0] = 6, 10

    steps = join.drain(marks, np.concatenate([WATCHED, first, second]), 300, ended=[1]).steps

    assert_array_equal([6, 5, 0, 0, 0, 0], steps.aggressors["who"]["tid"][1])
    assert_array_equal([12, 8, 0, 0, 0, 0], steps.aggressors["ns"][1])


def test_helpers_are_summed_and_the_worst_kept(join):
    pieces = np.concatenate([WATCHED, piece(1, 100, 110), piece(1, 150, 160)])
    pieces["helper_wait_ns"], pieces["helper_worst_ns"] = (0, 30, 50), (0, 25, 20)
    marks = np.concatenate([mark(2, 120, 150, parent=1), mark(1, 100, 200)])

    steps = join.drain(marks, pieces, 300, ended=[1]).steps

    assert_array_equal([0, 80], steps.helper_wait_ns)
    assert_array_equal([0, 25], steps.helper_worst_ns)


def test_events_are_summed_and_a_step_includes_its_stages(join):
    pieces = np.concatenate([WATCHED, piece(1, 100, 110), piece(2, 120, 130), piece(1, 150, 160)])
    pieces["events"][:, EVENT_AT["fault_minor"]] = 0, 3, 4, 5
    marks = np.concatenate([mark(2, 120, 150, parent=1), mark(1, 100, 200)])

    steps = join.drain(marks, pieces, 300, ended=[1]).steps

    assert_array_equal([4, 12], steps.events[:, EVENT_AT["fault_minor"]])
    assert steps.events.sum() == 16


def test_names_and_shares_are_those_of_the_targets_page(join, names):
    names.kinds[1, 3] = 30
    names.tenants[1, [0, 4, 5]] = 10, 40, 50
    marks = np.concatenate(
        [mark(1, 100, 200, kind=3, shares=[(4, 9), (5, 1)]), mark(2, 200, 300, kind=3)]
    )

    steps = join.drain(marks, WATCHED, 400, ended=[1]).steps

    assert_array_equal([30, 30], steps.kind)
    assert_array_equal([[40, 50, -1], [10, -1, -1]], steps.tenant[:, :3])
    assert_array_equal([[0.9, 0.1, 0], [1, 0, 0]], steps.share[:, :3])


# What is lost has a name.


def test_a_piece_that_comes_after_its_step_was_closed_goes_outside_and_is_counted(
    join, lost, names
):
    names.tenants[1, 0] = 5
    join.drain(mark(1, 100, 200), WATCHED, 200 + HOLD)

    closed = join.drain(NO_MARKS, piece(1, 100, 150, lock=50), 300 + HOLD)

    assert_array_equal([50], closed.outside["ns"][:, CAUSE_AT["lock"]])
    assert_array_equal([5], closed.outside_tenant)
    assert Counter(piece_late=1) == +lost


def test_a_piece_whose_mark_never_came_goes_outside_and_is_counted(join, lost):
    closed = join.drain(mark(2, 300, 400), piece(1, 100, 150), 500, ended=[1])

    assert_array_equal([1], closed.outside["step"])
    assert Counter(piece_without_mark=1) == +lost


def test_a_stage_whose_mark_never_came_is_part_of_its_step_and_is_counted(join, lost):
    pieces = np.concatenate([WATCHED, piece(2, 120, 130, io=10)])

    steps = join.drain(mark(1, 100, 200), pieces, 300, ended=[1]).steps

    assert ledger(steps)["io"] == 10
    assert Counter(piece_step_unknown=1) == +lost


def test_marks_nested_too_deep_are_refused_and_the_rest_keeps_its_books(join, lost):
    nest = [mark(i + 1, 100 + i, 300 - i, parent=i) for i in range(MAX_DEPTH + 8)]

    steps = join.drain(np.concatenate(nest[::-1]), WATCHED, 400, ended=[1]).steps

    assert len(steps) == MAX_DEPTH
    assert ledger(steps, -1) == {"running": 200}
    assert Counter(mark_too_deep=8) == +lost


def test_a_step_with_more_stages_than_are_held_is_cut_and_the_cut_part_unexplained(join, lost):
    n = MARKS.of_thread + 1
    stages = np.concatenate([mark(i + 2, 10 * i + 100, 10 * i + 105, parent=1) for i in range(n)])
    now = 10 * n + 100

    cut = join.drain(stages, WATCHED, now)
    after = join.drain(mark(1, 100, now + 50), NO_PIECES, now + 50, ended=[1])

    assert n == len(cut.steps)
    assert {"unexplained": now - 100, "running": 50} == ledger(after.steps)
    assert Counter(held_marks_full=n) == +lost


def test_pieces_of_a_step_that_never_ends_are_bounded(join, lost):
    n = PIECES.of_thread + 1
    pieces = np.repeat(piece(1, 100, 100), n)

    assert n == len(join.drain(NO_MARKS, pieces, 200).outside)
    assert Counter(held_pieces_full=n, piece_without_mark=n) == +lost


any_marks = st.lists(
    st.builds(
        lambda number, times, **rest: mark(number, min(times), max(times), **rest),
        number=st.integers(1, 5),
        times=st.tuples(st.integers(0, 50), st.integers(0, 50)),
        parent=st.integers(0, 5),
        target=st.integers(1, 2),
        shares=st.lists(st.tuples(st.integers(0, 255), st.integers(1, 2**32 - 1)), max_size=8),
    ),
    min_size=1,
)
any_pieces = st.lists(
    st.builds(
        piece,
        step=st.integers(0, 5),
        begin=st.integers(0, 60),
        until=st.integers(0, 60),
        target=st.integers(1, 2),
        tail_steal=st.integers(0, 20),
        tail_stall=st.integers(0, 20),
        net=st.integers(0, 60),
    ),
    min_size=1,
)


@settings(deadline=None)
@given(any_marks, any_pieces)
def test_marks_that_do_not_nest_have_books_that_close_and_nothing_is_held(marks, pieces):
    lost: Counter[str] = Counter()
    names = PageNames(np.zeros((8, 256), np.int32), np.zeros((8, 256), np.int32))
    join = Join(names, lost)

    closed = join.drain(np.concatenate(marks), np.concatenate(pieces), 100, ended=[1, 2])
    rest = join.drain(NO_MARKS, NO_PIECES, 200, ended=[1, 2])

    assert_array_equal(closed.steps.elapsed_ns, closed.steps.ns.sum(axis=1))
    np.testing.assert_allclose(closed.steps.share.sum(axis=1), 1)
    assert len(marks) == len(closed.steps) + lost["mark_too_deep"]
    assert [len(rest.steps), len(rest.outside)] == [0, 0]


@pytest.mark.parametrize("record", ["piece", "outlier"])
def test_a_tenant_that_no_page_has_room_for_is_the_targets_own(names, record):
    names.tenants[1, :3] = 5, 6, 7
    records = np.zeros(3, wire().dtype(record))
    records["process"], records["tenant"] = 1, [2, 256, 2**32 - 1]

    assert_array_equal([7, 5, 5], names.tenants_of(records))
