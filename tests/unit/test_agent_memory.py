"""Memory in the agent's metrics: what is exported, under which labels, and where nothing is."""

from __future__ import annotations

import os

import pytest

from tests.trees import planted
from tests.unit.numa_machine import NumaMachine, Piece, queue
from tracer import catalog
from tracer.agent.memory import Memory
from tracer.config import Config, Tenants
from tracer.host.facts import Known
from tracer.host.machine import Machine
from tracer.judge import locality
from tracer.memory.first_touch import FirstTouch, Toucher
from tracer.model import Target

TICKS = os.sysconf("SC_CLK_TCK")


class Agent:
    """The memory part of an agent, on a made machine, in a window that ends when asked."""

    def __init__(
        self, machine: NumaMachine, tree: str = "two_sockets", touches=None, **config
    ) -> None:
        self.now = 0.0
        capability = locality.placement(Machine.read(*planted(tree)))
        self.memory = Memory(Config(**config), capability, machine.watch(self.clock), touches)

    def clock(self) -> float:
        return self.now

    def after_window(self, *targets):
        for _ in targets:
            self.now += 1
            self.memory.tick(targets)
        self.now += 60
        self.memory.tick(targets)
        return {family.metric: dict(family.rows) for family in self.memory.families()}


@pytest.fixture
def machine(tmp_path) -> NumaMachine:
    return NumaMachine(tmp_path)


def test_a_window_s_figures_are_exported(machine):
    target = machine.process(7, Piece(start=0x500000, nodes=[0], path="[heap]"), queue([1, 1, 0]))
    machine.numastat(1, local=100, other=300, foreign=5)
    agent = Agent(machine)
    agent.memory.tick([target])
    machine.thread(7, 7, cpu=0, ticks=TICKS)
    machine.numastat(1, local=100, other=4300, foreign=6)

    rows = agent.after_window(target)

    assert rows[catalog.PLACEMENT_PAGES] == {
        ("chat", "private", "0"): 1,
        ("chat", "/dev/shm/queue", "0"): 1,
        ("chat", "/dev/shm/queue", "1"): 2,
    }
    assert rows[catalog.PLACEMENT_MISMATCH] == {("chat",): 0.5}
    assert rows[catalog.NUMASTAT_PAGES]["1", "other"] == 4300
    assert rows[catalog.NUMASTAT_PAGES]["1", "foreign"] == 6
    assert rows[catalog.NUMASTAT_DRIFT] == {}  # too few since boot to say what is usual
    assert rows[catalog.SELF_PLACEMENT][()] > 0


class Touches:
    """Somebody has touched each segment that is asked for first."""

    def seen(self, segments, pids):
        touch = FirstTouch(tuple(Toucher(pid, pid, "loader", 0, 3) for pid in pids))
        return Known(dict.fromkeys(segments, touch), "fentry")


def test_a_window_tells_who_touched_its_segments_first(machine):
    target = machine.process(7, queue([1, 1, 0]))
    told, not_traced = Agent(machine, touches=Touches()), Agent(machine)
    for agent in (told, not_traced):
        agent.after_window(target)

    (segment,) = told.memory.placement.segments
    assert segment.first_touch.value.by == (Toucher(7, 7, "loader", 0, 3),)
    (segment,) = not_traced.memory.placement.segments
    assert segment.first_touch.reason.startswith("only an agent sees that")


def test_drift_is_exported_once_it_is_known(machine):
    machine.numastat(1, local=10_000, other=0)
    agent = Agent(machine)
    machine.numastat(1, local=12_000, other=2_000)

    assert agent.after_window()[catalog.NUMASTAT_DRIFT] == {("1",): 0.5}


def test_tenants_beyond_the_configured_number_are_counted_together(machine):
    targets = []
    for pid in (7, 8, 9, 10):
        machine.process(pid, Piece(start=0x500000, nodes=[0], path="[heap]"))
        targets.append(Target(pid, pid, 0, "engine", f"tenant-{pid}"))

    rows = Agent(machine, tenants=Tenants(max=2)).after_window(*targets)

    assert rows[catalog.PLACEMENT_PAGES] == {
        ("tenant-7", "private", "0"): 1,
        ("tenant-8", "private", "0"): 1,
        ("other", "private", "0"): 2,
    }


@pytest.mark.parametrize("tree", ["kvm_guest", "flat_vm", "epyc_nps0"])
def test_where_nodes_mean_nothing_nothing_is_looked_at_or_exported(machine, tree):
    agent = Agent(machine, tree)
    rows = agent.after_window(machine.process(7, queue([0])))

    assert rows == {catalog.SELF_PLACEMENT: {(): 0.0}}
    assert machine.asked == []
    assert not agent.memory.capability.available
    assert agent.memory.placement is None
