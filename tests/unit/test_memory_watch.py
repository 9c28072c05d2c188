"""What is looked at when: run times by node, bindings, and the pace of all of it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.unit.numa_machine import NODES, NumaMachine, Piece, queue
from tracer.host.facts import Known, Unknown, value_of
from tracer.memory.numa_maps import numa_maps, policy_of_thread
from tracer.memory.pages import Pages
from tracer.memory.pinning import pinning
from tracer.memory.running import RunTimes

TICKS = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def machine(tmp_path) -> NumaMachine:
    return NumaMachine(tmp_path)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_run_time_goes_to_the_node_of_the_thread(machine):
    machine.process(7)
    runs = RunTimes(NODES, machine.proc)
    machine.thread(7, 7, cpu=1, ticks=500)
    machine.thread(7, 8, cpu=2, ticks=100)
    runs.look(7)
    machine.thread(7, 7, cpu=0, ticks=500 + 3 * TICKS)
    machine.thread(7, 8, cpu=3, ticks=100 + TICKS)
    runs.look(7)

    assert runs.take(7) == {0: 3.0, 1: 1.0}
    assert runs.take(7) == {}


def test_a_thread_that_changed_nodes_gives_half_to_either(machine):
    machine.process(7)
    runs = RunTimes(NODES, machine.proc)
    runs.look(7)
    machine.thread(7, 7, cpu=3, ticks=4 * TICKS)
    runs.look(7)

    assert runs.take(7) == {0: 2.0, 1: 2.0}


def test_a_thread_that_began_between_looks_counts_from_its_begin(machine):
    machine.process(7)
    runs = RunTimes(NODES, machine.proc)
    runs.look(7)
    machine.thread(7, 9, cpu=3, ticks=TICKS)
    runs.look(7)

    assert runs.take(7) == {1: 1.0}


def test_own_threads_are_found_on_some_node():
    """The kernel's own files: fields are where we look for them."""
    everywhere = [type(NODES[0])(0, frozenset(range(1024)), Unknown(""))]
    runs = RunTimes(everywhere)
    runs.look(os.getpid())
    end = time.process_time() + 5 / TICKS
    while time.process_time() < end:
        pass
    runs.look(os.getpid())

    assert runs.take(os.getpid())[0] >= 4 / TICKS


def test_threads_are_told_apart_by_what_they_are_bound_to(machine):
    machine.process(7)
    machine.thread(7, 8, cpu=2, ticks=0, cpus="2-3", policy="bind:0")
    machine.thread(7, 9, cpu=2, ticks=0, cpus="2-3", policy="bind:0")

    (first, two), (second, one) = value_of(pinning(7, NODES, machine.proc)) or ()

    assert (two, first.runs_on, value_of(first.policy)) == (2, {1}, "bind:0")
    assert (one, second.runs_on, value_of(second.policy)) == (1, {0, 1}, "default")


def test_a_policy_that_cannot_be_read_is_unknown(machine):
    machine.process(7)
    (machine.proc / "7/task/7/numa_maps").unlink()

    ((placed, _),) = value_of(pinning(7, NODES, machine.proc)) or ()

    assert "no numa_maps" in placed.policy.reason


def test_the_kernel_s_own_numa_maps_are_understood():
    rows = value_of(numa_maps(os.getpid())) or {}

    assert sum(n for row in rows.values() for n in row.pages.values()) > 100
    assert value_of(policy_of_thread(Path(f"/proc/self/task/{os.getpid()}"))) == "default"


def test_a_window_tells_all_at_its_end(machine):
    target = machine.process(7, Piece(start=0x500000, nodes=[0, 0], path="[heap]"), queue([1]))
    clock = Clock()
    looking = machine.watch(clock)
    assert looking.tick([target]) is None
    machine.thread(7, 7, cpu=0, ticks=2 * TICKS)
    machine.numastat(0, local=5000, other=0)
    clock.now += 60

    state = looking.tick([target])

    assert state is not None
    (seen,) = state.targets
    assert (seen.runs, seen.memory.value.private.value) == ({0: 2.0}, Pages({0: 2}))
    assert [segment.pages for segment in state.segments] == [Pages({1: 1})]
    assert (state.seconds, state.drift[0].window.local) == (60, 5000)


def test_one_process_s_memory_is_looked_at_in_each_tick(machine):
    targets = [machine.process(pid, queue([0])) for pid in (7, 8, 9)]
    clock, looks = Clock(), []
    looking = machine.watch(clock)
    for _ in range(4):
        looking.tick(targets)
        clock.now += 1
        looks.append(sum(s.cost_seconds > 0 for s in looking._seen.values()))

    assert looks == [1, 2, 3, 3]


def test_after_what_took_long_nothing_is_looked_at_for_longer(machine):
    targets, clock = [machine.process(pid, queue([0])) for pid in (7, 8)], Clock()
    looking = machine.watch(clock, window=10, pace=10**9)
    states = []
    for _ in range(5):
        clock.now += 10
        states += filter(None, [looking.tick(targets)])

    (state,) = states
    assert [isinstance(seen.memory, Known) for seen in state.targets] == [True, False]
    assert len(machine.asked) == 1


def test_a_target_that_ended_or_was_replaced_is_forgotten(machine):
    clock = Clock()
    looking = machine.watch(clock, window=10)
    old = machine.process(7, queue([0]))
    looking.tick([old])
    clock.now += 10
    new = type(old)(2, 7, 999, "engine-7", "chat")  # the same pid

    state = looking.tick([new])

    assert state is not None
    assert [(seen.target, seen.runs) for seen in state.targets] == [(new, {})]


def test_counters_that_are_unknown_leave_the_rest(machine):
    (machine.sys / "devices/system/node/node0/numastat").unlink()
    target = machine.process(7, queue([0]))
    clock = Clock()
    looking = machine.watch(clock)
    looking.tick([target])
    clock.now += 60

    state = looking.tick([target])

    assert state is not None
    assert (isinstance(state.numastat, Unknown), state.drift) == (True, {})
    assert isinstance(state.targets[0].memory, Known)
