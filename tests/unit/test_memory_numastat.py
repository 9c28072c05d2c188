"""numastat drift: what nodes gave to whom in a window, against what is usual."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.numa_machine import NumaMachine
from tracer.host.facts import Known, Unknown, value_of
from tracer.memory.numastat import FEW, REFERENCE, Counts, Drifts, numastat


class Node:
    """One node's counters, as they grow window by window."""

    def __init__(self, **since_boot: int) -> None:
        self.counts = Counts(**({"local": 0, "other": 0, "hit": 0, "foreign": 0} | since_boot))
        self.drifts = Drifts()
        self.drifts.add({0: self.counts})

    def window(self, **gained: int):
        self.counts = replace(
            self.counts, **{name: getattr(self.counts, name) + n for name, n in gained.items()}
        )
        return self.drifts.add({0: self.counts})[0]

    def remote(self, **gained: int):
        return self.window(**gained).remote


def test_counters_are_read_from_every_node(tmp_path):
    machine = NumaMachine(tmp_path)
    machine.numastat(0, local=10, other=20, foreign=3)

    counts = value_of(numastat(machine.proc, machine.sys))

    assert counts == {0: Counts(10, 20, 30, 3), 1: Counts(0, 0, 0, 0)}


def test_counters_that_are_switched_off_tell_nothing(tmp_path):
    machine = NumaMachine(tmp_path)
    setting = machine.proc / "sys/vm/numa_stat"
    setting.parent.mkdir(parents=True)
    setting.write_text("0\n")

    assert "0: the kernel does not count allocations" in numastat(machine.proc, machine.sys).reason


@pytest.mark.parametrize("content", ["", "numa_hit\n", "local_node x\nother_node 1\n"])
def test_counters_that_are_not_understood_are_unknown(tmp_path, content):
    machine = NumaMachine(tmp_path)
    (machine.sys / "devices/system/node/node1/numastat").write_text(content)

    assert isinstance(numastat(machine.proc, machine.sys), Unknown)


def test_the_first_window_is_held_against_the_time_since_boot():
    drift = Node(local=9_000, other=1_000).remote(local=5_000, other=5_000)

    assert (drift.now, drift.usual) == (Known(0.5, "the last window"), Known(0.1, "since boot"))
    assert value_of(drift.change) == pytest.approx(0.4)


def test_drift_rises_within_one_window_and_returns():
    node = Node()
    quiet = [value_of(node.remote(local=9_900, other=100).change) for _ in range(5)]
    risen = value_of(node.remote(local=2_000, other=8_000).change)
    after = value_of(node.remote(local=9_900, other=100).change)

    assert quiet[1:] == [0.0] * 4
    assert risen == pytest.approx(0.79)
    assert after == pytest.approx(0.0)


def test_what_lasts_becomes_usual():
    node = Node()
    for _ in range(REFERENCE):
        node.window(local=10_000, other=0)
    shifted = [value_of(node.remote(local=5_000, other=5_000).change) for _ in range(REFERENCE)]

    assert shifted[: REFERENCE // 2] == [0.5] * (REFERENCE // 2)
    assert shifted[-1] == 0.0


def test_few_allocations_tell_nothing_and_are_not_usual_either():
    node = Node()
    node.window(local=10_000, other=0)
    few = node.remote(other=FEW - 1)

    assert isinstance(few.change, Unknown)
    assert value_of(node.remote(local=10_000, other=0).usual) == 0.0


def test_what_was_wanted_from_a_full_node_and_came_from_another_drifts_by_itself():
    node = Node()
    node.window(local=9_000, other=1_000, hit=10_000)
    full = node.window(local=9_000, other=1_000, hit=7_500, foreign=2_500)

    assert value_of(full.missed.now) == value_of(full.missed.change) == 0.25
    assert value_of(full.remote.change) == 0.0


def test_a_node_that_appeared_has_no_drift_yet():
    drifts = Drifts()
    drifts.add({0: Counts(0, 0, 0, 0)})

    assert list(drifts.add({0: Counts(1, 0, 0, 0), 1: Counts(1, 0, 0, 0)})) == [0]
