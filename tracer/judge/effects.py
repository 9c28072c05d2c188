"""Whether a remedy can work on this machine, and why: one function for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tracer.host import hypervisor as vendors
from tracer.host.facts import Known, Unknown, value_of
from tracer.host.machine import Machine, Workload
from tracer.judge.deceptions import too_large_for_a_socket
from tracer.judge.hindrances import budget_in_words, enforced_budget
from tracer.judge.words import count, duration
from tracer.ledger.stalls import StallRow

_IN_HERE = "against other threads in here; the hypervisor stops any CPU all the same"
_NO_HYPERVISOR = "there is no hypervisor"
_WAITS_FOR_CORES = frozenset({"one", "some", "all_but_one"})
_SMALL_BUDGET = 0.9  # of a period: the kernel's own default is 0.95


class Effect(StrEnum):
    WORKS = "works"
    HARMS = "harms"
    CANNOT = "cannot work"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Judgement:
    effect: Effect
    reason: str


@dataclass(frozen=True, slots=True)
class Patient:
    """The machine and the processes that the remedies are for."""

    machine: Machine
    workloads: Sequence[Workload]
    stalls: Sequence[StallRow] = ()
    """That were measured, most time first."""

    @property
    def is_single(self) -> bool:
        return self.machine.cpu_count == 1


Judge = Callable[[Patient], Judgement]


def _works(reason: str) -> Judgement:
    return Judgement(Effect.WORKS, reason)


def _cannot(reason: str) -> Judgement:
    return Judgement(Effect.CANNOT, reason)


def _unknown(reason: str) -> Judgement:
    return Judgement(Effect.UNKNOWN, reason)


def _without_hypervisor(on: Patient) -> Judgement:
    """Of remedies for virtual machines, where this is not known to be one."""
    virtual = on.machine.hypervisor.virtual
    return _unknown(virtual.reason) if isinstance(virtual, Unknown) else _cannot(_NO_HYPERVISOR)


def leave_the_hypervisor(on: Patient) -> Judgement:
    if on.machine.is_virtual:
        return _works("no hypervisor, real nodes, CPUs and memory of one node each")
    manager = value_of(on.machine.cpu_manager)
    if manager and manager.policy == "static":
        return _cannot("already bare metal, with the static policy")
    if isinstance(on.machine.hypervisor.virtual, Unknown):
        return _unknown(on.machine.hypervisor.virtual.reason)
    return _works("no hypervisor already; the static policy gives whole CPUs of one node")


def fewer_cpus(on: Patient) -> Judgement:
    if not on.machine.is_virtual:
        return _without_hypervisor(on)
    if too_large_for_a_socket(on.machine):
        return _works("it then fits a socket, and borrows no cores of a neighbour's")
    if on.stalls and on.stalls[0].scope == "all":
        seconds = duration(on.stalls[0].seconds)
        return _unknown(f"for {seconds} all CPUs stood still at once: none waited for another")
    if waits := [row for row in on.stalls if row.scope in _WAITS_FOR_CORES]:
        seconds = duration(sum(row.seconds for row in waits))
        return _works(
            f"some of its CPUs stood still for {seconds} while others ran: fewer wait less"
        )
    return _unknown("what else the host runs cannot be seen from in here")


def enable_steal_clock(on: Patient) -> Judgement:
    steal = on.machine.hypervisor.steal_clock
    if value_of(steal):
        return _cannot("already live")
    if not on.machine.is_virtual:
        return _without_hypervisor(on)
    vendor = value_of(on.machine.hypervisor.vendor)
    if isinstance(steal, Known) and vendor == vendors.HYPERV:
        return _cannot(steal.source)
    if isinstance(steal, Known):
        return _works(f"{steal.source}: boot without it; it shows tier 0, cures nothing")
    if vendor == vendors.VMWARE:
        return _works("stealclock.enable, hardware version 13; it shows tier 0, cures nothing")
    return _unknown(steal.reason)


def needs_cpus(what: str) -> Judge:
    def judge(on: Patient) -> Judgement:
        if on.is_single:
            return _cannot("there is one CPU")
        return _works(_IN_HERE if on.machine.is_virtual else what)

    return judge


def isolate(on: Patient) -> Judgement:
    if on.machine.cpu_count <= 2:
        return _cannot(f"of {count(on.machine.cpu_count, 'CPU')} none can be spared")
    return needs_cpus("no other thread is put on those CPUs")(on)


def realtime(on: Patient) -> Judgement:
    budgets = [value_of(w.realtime_budget) for w in on.workloads]
    small = [b for b in budgets if b and 0 <= b.runtime_us < _SMALL_BUDGET * b.period_us]
    enforced = enforced_budget(on.machine)
    if isinstance(enforced, Unknown):
        return _unknown(enforced.reason)
    every = [enforced.value, *small]
    least = min(every, key=lambda b: b.runtime_us / b.period_us if b.runtime_us >= 0 else 1.0)
    if least.runtime_us == 0:
        return _cannot("the group's real-time budget is 0: the kernel refuses")
    if 0 < least.runtime_us < _SMALL_BUDGET * least.period_us:
        return Judgement(
            Effect.HARMS,
            f"budget {budget_in_words(least)}: stopped for the other {least.pause_us // 1000:,} ms",
        )
    if on.machine.is_virtual:
        return _unknown("ahead of other threads, but not running while its virtual CPU is stopped")
    return _works(f"ahead of other threads; budget {budget_in_words(least)}")


def raise_realtime_budget(on: Patient) -> Judgement:
    budget = enforced_budget(on.machine)
    if isinstance(budget, Unknown):
        return _unknown(budget.reason)
    if not on.machine.realtime_threads:
        return _cannot("no real-time thread runs here: it stops nobody")
    groups = [value_of(workload.realtime_budget) for workload in on.workloads]
    if any(each and each.pause_us for each in [budget.value, *groups]):
        return _works("real-time threads are no longer stopped at its end")
    return _cannot("there is no limit already")


def lift_quota(on: Patient) -> Judgement:
    if not on.workloads:
        return _unknown("no process was looked at")
    unknown = [w.quotas for w in on.workloads if isinstance(w.quotas, Unknown)]
    if any(value_of(workload.quotas) for workload in on.workloads):
        return _works("its threads are no longer stopped when it is used up")
    return _unknown(unknown[0].reason) if unknown else _cannot("no group of theirs has one")


def steer_interrupts(on: Patient) -> Judgement:
    if isinstance(on.machine.interrupts, Unknown):
        return _unknown(on.machine.interrupts.reason)
    return needs_cpus("device interrupts run on top of other threads")(on)


def bind_memory(on: Patient) -> Judgement:
    nodes = on.machine.topology.nodes
    if isinstance(nodes, Unknown):
        return _unknown(nodes.reason)
    if len(nodes.value) == 1:
        return _cannot("one visible NUMA node: there is nothing to choose from")
    if on.machine.is_virtual:
        return _unknown("works if the visible nodes are the host's, which cannot be seen here")
    return _works("pages stay on the node of their threads")


def show_nodes(on: Patient) -> Judgement:
    if not on.machine.is_virtual:
        return _without_hypervisor(on)
    if on.machine.node_count > 1:
        return _cannot(f"{on.machine.node_count} nodes are visible already")
    if too_large_for_a_socket(on.machine):
        return _works("binding memory then has an effect; needs power off and on")
    return _unknown("the machine may lie on one node of the host anyway")


def pad(on: Patient) -> Judgement:
    if on.is_single:
        return _cannot("there is one CPU")
    return _unknown("not measured here; microseconds a step elsewhere: after everything else")


def use_huge_pages(on: Patient) -> Judgement:
    settings = on.machine.settings
    if isinstance(settings.huge_pages, Unknown):
        return _unknown(settings.huge_pages.reason)
    if settings.huge_pages.value == "always" and value_of(settings.defrag) == "always":
        return Judgement(Effect.HARMS, "defrag is always: faults stop to move pages away")
    return _works("fewer address translations, which cost double in a virtual machine")
