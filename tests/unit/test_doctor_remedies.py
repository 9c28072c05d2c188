"""Remedies: on which machine each can work, and for which tail."""

from __future__ import annotations

import pytest

from tests.trees import plant, planted, write
from tracer import catalog
from tracer.host.facts import Known
from tracer.host.machine import Machine, Workload
from tracer.judge.effects import Effect
from tracer.judge.remedies import in_words, remedies
from tracer.judge.tiers import rank
from tracer.ledger.stalls import StallRow
from tracer.ledger.summary import StepRow

BARE, FEWER, STEAL = (
    "bare metal, static CPU manager, single-numa-node",
    "fewer virtual CPUs",
    "enable the steal clock",
)
BIND, FIFO, PIN, PAD = "bind memory", "SCHED_FIFO", "pin threads", "pad shared arrays"
QUOTA, BUDGET, NODES, HUGE = (
    "lift the quota",
    "raise the real-time budget",
    "show virtual NUMA nodes",
    "huge pages",
)
WORKS, HARMS, CANNOT, UNKNOWN = Effect


def effects(name, pids=(), ranking=None):
    proc, sys = planted(name)
    workloads = [Workload.read(pid, proc, sys) for pid in pids]
    found = remedies(Machine.read(proc, sys), workloads, ranking)
    return {remedy.name: remedy.effect for remedy in found}


def ranked(cannot_tell=None, **ms):
    """A tail that takes longer than the median by these causes."""
    alike = {cause.name: 0.0 for cause in catalog.CAUSES}
    row = StepRow(
        tenant="chat",
        step="decode",
        is_stage=False,
        count=1000,
        p50=0.0,
        p99=0.4,
        p999=0.4,
        seconds=alike,
        typical=alike,
        tail=alike | {cause: value / 1e3 for cause, value in ms.items()},
        tail_count=10,
    )
    return rank(row, cannot_tell)


def stalls(scope, seconds=1.0):
    return [StallRow(scope=scope, count=3, seconds=seconds, longest=seconds / 2)]


@pytest.mark.parametrize("scope", ["one", "some", "all_but_one"])
def test_fewer_cpus_help_those_that_waited_for_cores(scope):
    machine = Machine.read(*planted("kvm_guest"))

    judged = {each.name: each for each in remedies(machine, [], None, stalls(scope))}[FEWER]

    assert judged.effect is WORKS
    assert "1.00 s" in judged.reason


def test_fewer_cpus_do_not_help_a_machine_that_was_stopped_as_a_whole():
    machine = Machine.read(*planted("kvm_guest"))

    judged = {each.name: each for each in remedies(machine, [], None, stalls("all"))}[FEWER]

    assert judged.effect is UNKNOWN
    assert "at once" in judged.reason


def test_the_scenario_s_matrix_in_the_flat_vm():
    found = effects("flat_vm", [70])

    assert {
        PIN: WORKS,
        BIND: CANNOT,
        "first touch by the user of a page": CANNOT,
        FIFO: HARMS,
        BUDGET: WORKS,
        PAD: UNKNOWN,
        BARE: WORKS,
        FEWER: WORKS,
        STEAL: WORKS,
        NODES: WORKS,
        QUOTA: CANNOT,
    } == {name: found[name] for name in found if name not in _AS_ANYWHERE}


_AS_ANYWHERE = {"isolate CPUs", "move service threads", "steer interrupts", HUGE}


def test_on_the_two_socket_host_memory_can_be_bound_and_the_quota_lifted():
    found = effects("two_sockets", [70])

    assert {WORKS} == {found[name] for name in (PIN, BIND, FIFO, QUOTA, HUGE)}
    assert {CANNOT} == {found[name] for name in (BARE, FEWER, STEAL, NODES, BUDGET)}


@pytest.mark.parametrize(
    ("name", "remedy", "effect"),
    [
        ("kvm_guest", STEAL, CANNOT),  # it is live
        ("hyperv_guest", STEAL, CANNOT),  # there is none
        ("kvm_guest", "isolate CPUs", CANNOT),  # two CPUs
        ("kvm_guest", FIFO, UNKNOWN),
        ("kvm_guest", QUOTA, UNKNOWN),  # no process was given
        ("epyc_nps4", BIND, WORKS),
        ("epyc_nps0", BIND, CANNOT),
        ("epyc_nps1", BARE, WORKS),  # the static policy is missing
        ("xeon", HUGE, HARMS),
        ("arm64", NODES, CANNOT),
    ],
)
def test_the_effect_on(name, remedy, effect):
    assert effect is effects(name)[remedy]


def test_virtual_nodes_may_not_be_the_host_s(tmp_path):
    proc, sys = plant("hyperv_guest", tmp_path)
    write(sys / "devices/system/node/node1/cpulist", "8-15")

    found = {remedy.name: remedy.effect for remedy in remedies(Machine.read(proc, sys), ())}

    assert (UNKNOWN, CANNOT) == (found[BIND], found[NODES])


def test_a_group_without_real_time_budget_refuses_fifo(tmp_path):
    proc, sys = plant("flat_vm", tmp_path)
    (path,) = sys.rglob("cpu.rt_runtime_us")
    write(path, "0")

    found = remedies(Machine.read(proc, sys), [Workload.read(70, proc, sys)])

    assert [(CANNOT, "the group's real-time budget is 0: the kernel refuses")] == [
        (remedy.effect, remedy.reason) for remedy in found if remedy.name == FIFO
    ]


def test_where_the_hypervisor_carries_the_tail_pinning_cannot_help():
    found = effects("flat_vm", [70], ranked(steal=400, preempted=1))

    assert (CANNOT, WORKS, WORKS) == (found[PIN], found[BARE], found[FEWER])


@pytest.mark.parametrize(
    ("preempted", "effect", "said"),
    [
        (0, CANNOT, "nothing of this tail is preempted, in the run queue"),
        (16, CANNOT, "4.0 % at most of this tail is preempted, in the run queue"),
        (40, WORKS, "; gains at most 40.0 ms"),
    ],
)
def test_what_gains_next_to_nothing_is_in_vain_and_what_works_tells_its_bound(
    preempted, effect, said
):
    machine = Machine.read(*planted("flat_vm"))
    ranking = ranked(stall=400 - preempted, preempted=preempted)

    lines = in_words(remedies(machine, [], ranking))

    assert [(effect, said)] == [(e, text[-len(said) :]) for e, text in lines if PIN in text]


def test_where_a_quota_carries_the_tail_lifting_it_helps_and_pinning_does_not():
    found = effects("two_sockets", [70], ranked(quota=400))

    assert (WORKS, CANNOT) == (found[QUOTA], found[PIN])


def test_a_cause_that_cannot_be_told_is_not_taken_for_none():
    """Its time is in other causes of its tier."""
    told = effects("two_sockets", [70], ranked(preempted=400))
    untold = effects("two_sockets", [70], ranked({"quota": "no CONFIG"}, preempted=400))

    assert (CANNOT, WORKS) == (told[QUOTA], untold[QUOTA])


def test_the_gain_is_at_most_the_time_of_what_it_acts_on():
    proc, sys = planted("flat_vm")
    ranking = ranked(stall=300, preempted=60, runqueue=30, quota=10)

    gains = {r.name: r.gain_at_most_ns for r in remedies(Machine.read(proc, sys), (), ranking)}

    assert Known(90_000_000, "measured") == gains[PIN]
    assert Known(10_000_000, "measured") == gains[QUOTA]
    assert Known(390_000_000, "bound") == gains[BARE]
    assert "it takes no time away" == gains[STEAL].reason


def test_without_a_ranking_no_gain_is_known():
    proc, sys = planted("arm64")

    reasons = {r.gain_at_most_ns.reason for r in remedies(Machine.read(proc, sys), ())}
    assert {"no tail has been ranked"} == reasons


def test_remedies_of_one_reason_share_a_line():
    proc, sys = planted("arm64")

    lines = list(in_words(remedies(Machine.read(proc, sys), ())))

    shared = "fewer virtual CPUs, enable the steal clock, show virtual NUMA nodes"
    assert (CANNOT, f"{shared}: there is no hypervisor") in lines


def test_on_a_machine_that_shows_nothing_nothing_is_claimed(tmp_path):
    found = effects_of_nothing(tmp_path)

    assert {UNKNOWN} == {found[name] for name in (BARE, FEWER, STEAL, BIND, FIFO, QUOTA, HUGE)}


def effects_of_nothing(directory):
    return {r.name: r.effect for r in remedies(Machine.read(directory, directory), ())}
