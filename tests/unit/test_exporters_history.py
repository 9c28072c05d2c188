"""The half hour that the page shows: growth of counters by slot, and what is plotted of it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from exporters.history import SLOTS, History
from exporters.plots import plots
from tracer import catalog
from tracer.model import Family, Histogram

EDGES = np.array([0.001, 0.01])


def waits(**tenants):
    """A tenant's (counts, seconds) of being preempted."""
    rows = {
        (tenant, "preempted"): Histogram(np.array(counts), seconds)
        for tenant, (counts, seconds) in tenants.items()
    }
    return Family(catalog.DESCHEDULE, rows, EDGES)


def blame(seconds, aggressor="batch"):
    return Family(catalog.BLAME, {("chat", aggressor, "preempted"): seconds})


def history(*publishings):
    """Each is (time, families); there was nothing before the first."""
    fed = History()
    fed.add([], publishings[0][0] - 5 if publishings else 0)
    for now, families in publishings:
        fed.add(families, now)
    return fed


def plotted(*publishings):
    return plots(history(*publishings).past(), unix_offset=1000.0)


def tenant(of, name):
    (found,) = [each for each in of["tenants"] if each["tenant"] == name]
    return found


def test_a_slot_has_what_counters_grew_by():
    of = plotted(
        (0, [waits(chat=([5, 1, 0], 0.02))]),
        (5, [waits(chat=([7, 1, 1], 0.06))]),
        (10, [waits(chat=([7, 2, 1], 0.07))]),
    )

    chat = tenant(of, "chat")
    assert chat["intervals"] == [[7, 1, 1], [0, 1, 0]]
    assert chat["seconds"]["preempted"] == [0.06, 0.01]
    assert chat["seconds"]["quota"] == [0, 0]


def test_all_tenants_together_come_first_and_the_others_by_time_lost():
    of = plotted((0, [waits(chat=([1, 0, 0], 0.1), batch=([0, 2, 0], 0.2), idle=([0, 0, 0], 0))]))

    assert [each["tenant"] for each in of["tenants"]] == [None, "batch", "chat"]
    assert of["tenants"][0]["intervals"] == [[1, 2]]
    assert of["tenants"][0]["seconds"]["preempted"] == [pytest.approx(0.3)]


@pytest.mark.parametrize(
    ("counts", "bounds", "shown"),
    [
        ([0, 3, 0], [0.001, 0.01], [3]),
        ([2, 0, 0], [0, 0.001], [2]),
        ([0, 0, 1], [0.01, None], [1]),
        ([1, 0, 1], [0, 0.001, 0.01, None], [1, 0, 1]),
    ],
)
def test_only_durations_that_occurred_are_shown(counts, bounds, shown):
    of = plotted((0, [waits(chat=(counts, 0.01))]))

    assert of["bounds"] == bounds
    assert tenant(of, "chat")["intervals"] == [shown]


def test_a_counter_that_began_anew_grew_by_what_it_has():
    of = plotted((0, [blame(9.0)]), (10, [blame(0.5)]))

    assert of["blame"][0]["seconds"] == [9.0, 0.5]


def test_slots_without_a_publishing_are_absent_not_zero():
    of = plotted((0, [blame(1.0)]), (30, [blame(2.0)]))

    assert of["blame"][0]["seconds"] == [1.0, None, None, 1.0]
    assert of["tenants"][0]["intervals"] == [[], None, None, []]


def test_times_are_those_of_the_world():
    of = plotted((20, [blame(1.0)]), (33, [blame(2.0)]))

    assert (of["begin"], of["until"]) == (1020.0, 1033.0)


def test_the_past_is_half_an_hour():
    of = plotted(*((10 * at, [blame(float(at))]) for at in range(SLOTS + 5)))

    assert len(of["blame"][0]["seconds"]) == SLOTS
    assert of["begin"] == 1050.0


@pytest.mark.parametrize(
    ("grown", "since"),
    [
        ([0, 0, 1, 1, 1], 2),
        ([1, 1, 0, 0, 1], 0),  # a pause of two slots
        ([1, 0, 0, 0, 1], 4),
        ([1, 1, 0, 0, 0], None),  # over
        ([0.01, 0.01, 0.01, 0.01, 0.01], None),  # too little
    ],
)
def test_an_aggressor_is_told_with_the_begin_of_its_present_episode(grown, since):
    total = np.cumsum(grown)
    of = plotted(*((10 * at, [blame(float(total[at]))]) for at in range(len(grown))))

    assert of["blame"][0]["since_slot"] == since


def test_aggressors_of_the_last_minute_come_before_those_of_long_ago():
    old, new = blame(100.0, "old"), blame(1.0, "new")

    of = plotted((0, [old]), *((at, [old]) for at in range(10, 70, 10)), (70, [new]))

    assert [each["aggressor"] for each in of["blame"]] == ["new", "old"]
    assert [each["last_minute"] for each in of["blame"]] == [1.0, 0]


def test_the_first_aggressor_of_each_victim_is_told_however_little_it_took():
    loud = {("chat", f"aggressor-{n}", "preempted"): 100.0 + n for n in range(30)}
    quiet = {("batch", "cron", "preempted"): 2.0, ("batch", "sshd", "preempted"): 1.0}

    of = plotted((0, [Family(catalog.BLAME, loud | quiet)]))

    pairs = [(each["victim"], each["aggressor"]) for each in of["blame"]]
    assert pairs[0] == ("chat", "aggressor-29")
    assert pairs[20:] == [("batch", "cron")]


def test_steal_is_by_cpu_and_that_of_before_does_not_count():
    of = plotted(
        (0, []),
        (10, [Family(catalog.STEAL, {("0",): 100.0, ("1",): 200.0})]),
        (20, [Family(catalog.STEAL, {("0",): 100.5, ("1",): 200.0})]),
    )

    assert [(each["cpu"], each["seconds"]) for each in of["steal"]] == [("0", [0, 0, 0.5])]


def test_what_was_given_out_never_changes():
    fed = history((0, [waits(chat=([1, 0, 0], 0.1)), blame(1.0)]))
    before = plots(fed.past(), 0)

    past = fed.past()
    fed.add([waits(chat=([9, 9, 9], 0.9)), blame(9.0)], 5)

    assert plots(past, 0) == before


def test_before_the_first_publishing_there_is_nothing_to_plot():
    of = plotted()

    assert of["tenants"][0]["intervals"] == []
    assert of["blame"] == []


def test_what_is_plotted_is_bounded():
    many = [f"tenant-{at}" for at in range(100)]
    edges, counts = np.geomspace(1e-5, 10, 41), np.full(42, 12345)

    def busy(at):
        waits = {(name, "preempted"): Histogram(counts * at, 1.2345678 * at) for name in many}
        taken = {(victim, by, "preempted"): 1.2345678 * at for victim in many[:9] for by in many}
        stolen = {(str(cpu),): 1.2345678 * at for cpu in range(256)}
        return [
            Family(catalog.DESCHEDULE, waits, edges),
            Family(catalog.BLAME, taken),
            Family(catalog.STEAL, stolen),
        ]

    of = plotted(*((10 * at, busy(at)) for at in range(SLOTS)))

    assert (len(of["tenants"]), of["more_tenants"]) == (9, 92)
    assert (len(of["blame"]), len(of["steal"])) == (20, 64)
    assert len(json.dumps(of)) < 1_000_000
