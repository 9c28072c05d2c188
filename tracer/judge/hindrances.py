"""Limits and settings that stop threads, move their memory or wake them late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracer.host.facts import Fact, Unknown, format_cpus, value_of
from tracer.host.interrupts import arriving_on
from tracer.host.limits import Quota, RealtimeBudget
from tracer.host.machine import Machine, Workload
from tracer.host.topology import nodes_of
from tracer.judge.findings import Finding, Sure, Weight
from tracer.judge.words import count

_PRESSURE_PERCENT = 20.0  # of a minute: below, threads wait now and then everywhere
_LATE_WAKE_US = 100
_SLOW_GOVERNORS = frozenset({"powersave", "ondemand", "conservative", "schedutil"})


def hindrances(machine: Machine, workloads: Sequence[Workload]) -> Iterator[Finding]:
    for workload in workloads:
        yield from _quotas(workload)
        yield from _group_budget(workload)
        yield from _memory_elsewhere(machine, workload)
        yield from _interrupted(machine, workload)
    yield from _global_budget(machine)
    yield from _pressure(machine)
    yield from _numa_balancing(machine)
    yield from _huge_pages(machine)
    yield from _shared_by_kubelet(machine)
    yield from _power(machine)


def budget_in_words(budget: RealtimeBudget) -> str:
    """``950 of each 1,000 ms``"""
    if budget.runtime_us < 0:
        return "without limit"
    return f"{budget.runtime_us / 1000:,.0f} of each {budget.period_us / 1000:,.0f} ms"


def enforced_budget(machine: Machine) -> Fact[RealtimeBudget]:
    """The fair server's where it can be read, because the older budget is not enforced there."""
    server = machine.fair_server
    return machine.realtime_budget if isinstance(server, Unknown) else server


def _quotas(workload: Workload) -> Iterator[Finding]:
    for quota in value_of(workload.quotas) or ():
        throttled = value_of(quota.throttled)
        yield Finding(
            "quota",
            Weight.COSTS if throttled else Weight.NOTE,
            Sure.CERTAIN if throttled else Sure.POSSIBLE,
            f"{_who(workload)}: quota of {quota.cpus:.2f} CPUs in {quota.group}, {_history(quota)}",
            f"when it is used up, all its threads stop, up to {quota.period_us / 1000:,.0f} ms",
            "no CPU limit on inference; or more than its threads can use at once",
        )


def _history(quota: Quota) -> str:
    if isinstance(quota.throttled, Unknown) or isinstance(quota.periods, Unknown):
        return "no telling how often used up"
    return f"used up in {quota.throttled.value:,} of {quota.periods.value:,} periods"


def _group_budget(workload: Workload) -> Iterator[Finding]:
    budget = value_of(workload.realtime_budget)
    if budget and budget.pause_us and workload.realtime_threads:
        threads = count(len(workload.realtime_threads), "real-time thread")
        yield _budget_finding(
            "group_realtime_budget",
            f"{_who(workload)}: {threads} in a group",
            budget,
            "cpu.rt_runtime_us of the group",
        )


def _global_budget(machine: Machine) -> Iterator[Finding]:
    budget = value_of(enforced_budget(machine))
    if budget and budget.pause_us and machine.realtime_threads:
        names = sorted({thread.comm for thread in machine.realtime_threads})
        shown = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
        yield _budget_finding(
            "realtime_budget",
            f"{count(len(machine.realtime_threads), 'real-time thread')} ({shown})",
            budget,
            "kernel.sched_rt_runtime_us, or the fair server's runtime since Linux 6.12",
        )


def _budget_finding(name: str, threads: str, budget: RealtimeBudget, where: str) -> Finding:
    return Finding(
        name,
        Weight.COSTS,
        Sure.LIKELY,
        f"{threads} may run {budget_in_words(budget)}",
        f"one that does not sleep is stopped for {budget.pause_us / 1000:,.0f} ms in each period",
        f"let them sleep, or raise {where}",
    )


def _memory_elsewhere(machine: Machine, workload: Workload) -> Iterator[Finding]:
    nodes = value_of(machine.topology.nodes) or ()
    for allowed, threads in (value_of(workload.allowed) or {}).items():
        on = nodes_of(nodes, allowed.cpus)
        where = f"{_who(workload)}: {count(threads, 'thread')} on CPUs of node {format_cpus(on)}"
        if on and not on & allowed.nodes:
            yield Finding(
                "memory_elsewhere",
                Weight.COSTS,
                Sure.CERTAIN,
                f"{where} with memory of node {format_cpus(allowed.nodes)} alone",
                "every page they touch first is remote",
                "give the group CPUs and memory of the same node (cpuset)",
            )
        elif len(on) > 1:
            yield Finding(
                "spread_over_nodes",
                Weight.NOTE,
                Sure.LIKELY,
                where,
                "the scheduler may move them away from their memory",
                "pin them to one node's CPUs and bind their memory there",
            )


def _interrupted(machine: Machine, workload: Workload) -> Iterator[Finding]:
    online = value_of(machine.topology.online) or frozenset()
    pinned = frozenset().union(*(a.cpus for a in value_of(workload.allowed) or {}))
    if not pinned or pinned >= online:
        return
    if here := arriving_on(value_of(machine.interrupts) or (), pinned):
        names = ", ".join(each.name for each in here[:3])
        number = count(len(here), "device interrupt")
        yield Finding(
            "interrupts_on_pinned_cpus",
            Weight.COSTS,
            Sure.LIKELY,
            f"{_who(workload)}: {number} on its CPUs {format_cpus(pinned)}: {names}",
            "they, and the soft interrupts behind them, run on top of its threads",
            "steer them to other CPUs (/proc/irq/*/smp_affinity_list)",
        )


def _pressure(machine: Machine) -> Iterator[Finding]:
    pressure = value_of(machine.settings.cpu_pressure)
    if pressure is not None and pressure >= _PRESSURE_PERCENT:
        yield Finding(
            "cpu_pressure",
            Weight.COSTS,
            Sure.CERTAIN,
            f"some thread had to wait for a CPU in {pressure:.0f} % of the last minute",
            "threads queue: preemption and run queue will be in the tail",
            "tailtrace run names who takes the CPUs; move them away",
        )


def _numa_balancing(machine: Machine) -> Iterator[Finding]:
    if value_of(machine.settings.numa_balancing) and machine.node_count > 1:
        yield Finding(
            "numa_balancing",
            Weight.COSTS,
            Sure.LIKELY,
            f"NUMA balancing is on, with {machine.node_count} nodes",
            "it takes pages away to see who comes for them: faults and migrations inside of steps",
            "kernel.numa_balancing = 0 once threads and memory are bound",
        )


def _huge_pages(machine: Machine) -> Iterator[Finding]:
    settings = machine.settings
    if value_of(settings.huge_pages) == "always":
        stops = value_of(settings.defrag) == "always"
        yield Finding(
            "huge_pages",
            Weight.COSTS if stops else Weight.NOTE,
            Sure.LIKELY if stops else Sure.POSSIBLE,
            f"transparent huge pages are always on, defrag {value_of(settings.defrag)}",
            "a page fault may stop to move other pages out of the way, for milliseconds"
            if stops
            else "pages are merged behind the back of threads that did not ask for it",
            "defrag madvise; huge pages where the engine asks for them",
        )


def _shared_by_kubelet(machine: Machine) -> Iterator[Finding]:
    manager = value_of(machine.cpu_manager)
    if manager and manager.policy != "static":
        yield Finding(
            "cpu_manager",
            Weight.NOTE,
            Sure.CERTAIN,
            f"the kubelet's CPU manager has the policy {manager.policy!r}",
            "no container has CPUs of its own: all share all",
            "cpuManagerPolicy static, topologyManagerPolicy single-numa-node, whole CPUs",
        )


def _power(machine: Machine) -> Iterator[Finding]:
    governors = value_of(machine.settings.governors) or {}
    if slow := sorted(governors.keys() & _SLOW_GOVERNORS):
        yield Finding(
            "governor",
            Weight.NOTE,
            Sure.POSSIBLE,
            f"frequency governor {', '.join(slow)}",
            "a thread that wakes runs at a low frequency at first",
            "governor performance on CPUs of inference",
        )
    idle = value_of(machine.settings.deepest_idle)
    if idle and idle.latency_us >= _LATE_WAKE_US:
        yield Finding(
            "deep_idle",
            Weight.NOTE,
            Sure.POSSIBLE,
            f"CPUs may sleep in {idle.name}, which takes {idle.latency_us} us to leave",
            "the first step after a pause begins that much late",
            "keep /dev/cpu_dma_latency open at 0, or disable the state on CPUs of inference",
        )


def _who(workload: Workload) -> str:
    return f"{value_of(workload.comm) or 'process'} {workload.pid}"
