"""
Where a machine is not what it shows: hidden sockets, nodes, threads; a steal clock that is silent.

Each check states its reason. What is unknown gives no finding of what it might be.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracer.host import hypervisor as vendors
from tracer.host.facts import Known, Unknown, format_cpus, value_of, why
from tracer.host.machine import Machine
from tracer.judge.findings import Finding, Sure, Weight
from tracer.judge.words import count

_MOST_SOCKETS = 8  # that x86 servers connect without a switch of their own; none has one core
_FEW_VMWARE_CPUS = 8  # vSphere 8, "Using Virtual NUMA": exposed by default from 9 on
_TICKING_CLOCKS = ("jiffies", "refined-jiffies")
_SLOW_CLOCKS = ("hpet", "acpi_pm", "pit", *_TICKING_CLOCKS)

_FEWER_SOCKETS = {
    vendors.VMWARE: "set cores per socket (cpuid.coresPerSocket) to those of the host",
    vendors.KVM: "set sockets, cores and threads as the host has them (libvirt: cpu/topology)",
}
_SHOW_NODES = {
    vendors.VMWARE: "turn CPU hot-add off, power off and on (numa.vcpu.min, KB 2040375)",
    vendors.KVM: "define NUMA cells and bind their memory (libvirt: cpu/numa and numatune)",
    vendors.HYPERV: "allow it to span nodes with virtual NUMA, no dynamic memory",
}
_SHOW_STEAL = {
    vendors.VMWARE: 'set stealclock.enable = "TRUE" at hardware version 13 or later, restart',
    vendors.HYPERV: "rely on stalls, seen by the lateness of timers; or move off this hypervisor",
}


def deceptions(machine: Machine) -> Iterator[Finding]:
    yield from _unknown_hypervisor(machine)
    if machine.is_virtual:
        yield from _single_core_sockets(machine)
        yield from _larger_than_a_socket(machine)
        yield from _hidden_nodes(machine)
        yield from _unproven_nodes(machine)
        yield from _hidden_threads(machine)
        yield from _silent_steal_clock(machine)
    else:
        yield from _interleaved_memory(machine)
    yield from _caches_against_sockets(machine)
    yield from _slow_clock(machine)


def _unknown_hypervisor(machine: Machine) -> Iterator[Finding]:
    if isinstance(virtual := machine.hypervisor.virtual, Unknown):
        yield Finding(
            "unknown_hypervisor",
            Weight.NOTE,
            Sure.POSSIBLE,
            f"no telling whether this machine is virtual: {virtual.reason}",
            "time that a hypervisor takes would look like running",
            "ask whoever runs the machine",
        )


def _single_core_sockets(machine: Machine) -> Iterator[Finding]:
    sockets = len(value_of(machine.topology.sockets) or ())
    if sockets > 1 and value_of(machine.topology.cores_per_socket) == 1:
        many = sockets > _MOST_SOCKETS
        yield Finding(
            "single_core_sockets",
            Weight.MISLEADS if many else Weight.NOTE,
            Sure.CERTAIN if many else Sure.LIKELY,
            f"{sockets} sockets of one core each: servers have 1 to {_MOST_SOCKETS}, of many cores",
            "real sockets and shared caches are hidden: placing threads by socket means nothing",
            _for_vendor(machine, _FEWER_SOCKETS, "have the hypervisor show sockets as they are"),
        )


def _larger_than_a_socket(machine: Machine) -> Iterator[Finding]:
    if reason := too_large_for_a_socket(machine):
        yield Finding(
            "larger_than_a_socket",
            Weight.MISLEADS,
            _sure_of_size(machine),
            reason,
            "it borrows cores of a second socket: beside another like it, both wait for each"
            " other, stopped for tens to hundreds of ms that no thread in here can see",
            "give it no more CPUs than a socket has cores, and no neighbour on those",
        )


def _hidden_nodes(machine: Machine) -> Iterator[Finding]:
    if machine.node_count != 1:
        return
    implies = (
        "remote memory looks local: numastat shows 100 % local, and mbind, numactl and first"
        " touch have no effect"
    )
    action = _for_vendor(machine, _SHOW_NODES, "have the hypervisor show its nodes")
    sockets = len(value_of(machine.topology.sockets) or ())
    whole_sockets = sockets > 1 and (value_of(machine.topology.cores_per_socket) or 0) > 1
    if too_large_for_a_socket(machine) or whole_sockets:
        size = f"{sockets} sockets" if whole_sockets else f"{machine.cpu_count} CPUs"
        yield Finding(
            "one_node_on_large_machine",
            Weight.MISLEADS,
            Sure.LIKELY if whole_sockets else _sure_of_size(machine),
            f"one NUMA node for {size}, which no single node of the hardware has",
            implies,
            action,
        )
    elif value_of(machine.hypervisor.vendor) == vendors.VMWARE and machine.cpu_count > 1:
        yield Finding(
            "nodes_not_shown",
            Weight.NOTE,
            Sure.POSSIBLE,
            f"one NUMA node, {_why_vmware_hides(machine)}",
            implies,
            action,
        )


def _why_vmware_hides(machine: Machine) -> str:
    if machine.cpu_count <= _FEW_VMWARE_CPUS:
        return f"as VMware shows by default to machines of up to {_FEW_VMWARE_CPUS} CPUs"
    if len(value_of(machine.topology.possible) or ()) > machine.cpu_count:
        return "and CPUs could be added while it runs: CPU hot-add turns virtual NUMA off"
    return "which may be all there is, or a setting"


def _unproven_nodes(machine: Machine) -> Iterator[Finding]:
    if machine.node_count > 1:
        yield Finding(
            "unproven_nodes",
            Weight.NOTE,
            Sure.POSSIBLE,
            f"{machine.node_count} NUMA nodes, as the hypervisor shows them",
            "they may not be the host's: virtual nodes are fixed at first power-on and stay the"
            " same after a migration to another host",
            "compare with the host's; measure latency from each node to each",
        )


def _hidden_threads(machine: Machine) -> Iterator[Finding]:
    if machine.cpu_count > 1 and value_of(machine.topology.threads_per_core) == 1:
        yield Finding(
            "hidden_threads",
            Weight.NOTE,
            Sure.POSSIBLE,
            "one thread per core, as the hypervisor shows it",
            "two CPUs may be threads of one real core and slow each other down unseen",
            "ask whoever runs the host whether virtual CPUs are cores or hyperthreads",
        )


def _silent_steal_clock(machine: Machine) -> Iterator[Finding]:
    steal = machine.hypervisor.steal_clock
    if value_of(steal):
        return
    suspect = isinstance(steal, Known) or value_of(machine.hypervisor.vendor) == vendors.VMWARE
    sure_if_unknown = Sure.LIKELY if suspect else Sure.POSSIBLE
    yield Finding(
        "silent_steal_clock",
        Weight.MISLEADS if suspect else Weight.NOTE,
        Sure.CERTAIN if isinstance(steal, Known) else sure_if_unknown,
        f"{'no steal clock' if suspect else 'steal'}: {why(steal)}",
        "a steal of 0 does not mean that nothing is stolen: below the length of a stall, 1 ms, what"
        " is stolen looks like running",
        _for_vendor(machine, _SHOW_STEAL, "load the host and look at steal in /proc/stat again"),
    )


def _interleaved_memory(machine: Machine) -> Iterator[Finding]:
    sockets = len(value_of(machine.topology.sockets) or ())
    if value_of(machine.hypervisor.virtual) is False and sockets > machine.node_count > 0:
        yield Finding(
            "interleaved_memory",
            Weight.MISLEADS,
            Sure.CERTAIN,
            f"{sockets} sockets, but {count(machine.node_count, 'NUMA node')}, and no hypervisor",
            "memory is interleaved over the sockets, or nodes are off: half of all accesses are"
            " remote, and every counter says local",
            "firmware: NPS1 or more, node interleaving off; kernel: no numa=off",
        )


def _caches_against_sockets(machine: Machine) -> Iterator[Finding]:
    sockets = value_of(machine.topology.sockets) or ()
    caches = value_of(machine.topology.last_caches) or ()
    for cache in caches:
        if sockets and not any(cache.cpus <= socket for socket in sockets):
            yield Finding(
                "cache_across_sockets",
                Weight.MISLEADS,
                Sure.CERTAIN,
                f"a level {cache.level} cache shared by CPUs {format_cpus(cache.cpus)}, which are"
                " on different sockets",
                "no cache spans sockets: sockets or caches are made up, neither can be relied on",
                _for_vendor(machine, _FEWER_SOCKETS, "ask the maker of the firmware"),
            )
            return  # one shows it


def _slow_clock(machine: Machine) -> Iterator[Finding]:
    clock = value_of(machine.hypervisor.clock)
    if clock in _SLOW_CLOCKS:
        ticking = clock in _TICKING_CLOCKS
        yield Finding(
            "slow_clock",
            Weight.MISLEADS if ticking else Weight.COSTS,
            Sure.CERTAIN,
            f"the clock in use is {clock}: the kernel does not trust a faster one",
            "time stands still between ticks, for milliseconds"
            if ticking
            else "each look at the clock takes about a microsecond, at every mark and switch",
            "boot log: why tsc was called unstable; then firmware, or tsc=reliable where it is",
        )


def too_large_for_a_socket(machine: Machine) -> str:
    """The reason for which a visible node cannot be one socket; empty when it can."""
    cores = machine.processor.cores_per_socket
    largest = _largest_node(machine)
    if isinstance(cores, Unknown) or largest <= cores.value:
        return ""
    return f"{largest} CPUs in one NUMA node, but a socket has {cores.value} cores: {cores.source}"


def _sure_of_size(machine: Machine) -> Sure:
    """With two threads per core, a socket could hold up to twice its cores."""
    threads = 2 * (value_of(machine.processor.cores_per_socket) or 0)
    return Sure.CERTAIN if _largest_node(machine) > threads else Sure.LIKELY


def _largest_node(machine: Machine) -> int:
    return max((len(node.cpus) for node in value_of(machine.topology.nodes) or ()), default=0)


def _for_vendor(machine: Machine, actions: dict[str, str], otherwise: str) -> str:
    return actions.get(value_of(machine.hypervisor.vendor) or "", otherwise)
