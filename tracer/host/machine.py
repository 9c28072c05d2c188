"""All that is asked of a machine and of processes on it, read once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tracer.host import hierarchy, limits, threads
from tracer.host.facts import Fact, Unknown, text, value_of
from tracer.host.hypervisor import Hypervisor
from tracer.host.interrupts import Interrupt, interrupts
from tracer.host.kubelet import CpuManager, cpu_manager
from tracer.host.limits import Quota, RealtimeBudget
from tracer.host.processor import Processor
from tracer.host.settings import Settings
from tracer.host.threads import Allowed, RealtimeThread
from tracer.host.topology import Topology


@dataclass(frozen=True, slots=True)
class Machine:
    processor: Processor
    topology: Topology
    hypervisor: Hypervisor
    settings: Settings
    realtime_budget: Fact[RealtimeBudget]
    fair_server: Fact[RealtimeBudget]
    realtime_threads: tuple[RealtimeThread, ...]
    interrupts: Fact[tuple[Interrupt, ...]]
    cpu_manager: Fact[CpuManager]

    @classmethod
    def read(cls, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> Machine:
        return cls(
            Processor.read(proc),
            Topology.read(sys),
            Hypervisor.read(proc, sys),
            Settings.read(proc, sys),
            limits.global_realtime(proc),
            limits.fair_server(sys),
            threads.realtime(proc),
            interrupts(proc),
            cpu_manager(proc),
        )

    @property
    def is_virtual(self) -> bool:
        """Known to be."""
        return value_of(self.hypervisor.virtual) is True

    @property
    def cpu_count(self) -> int:
        """Online; 0 when sysfs does not tell."""
        return len(value_of(self.topology.online) or ())

    @property
    def node_count(self) -> int:
        """Visible NUMA nodes that have CPUs; 0 when sysfs does not tell."""
        return sum(1 for node in value_of(self.topology.nodes) or () if node.cpus)


@dataclass(frozen=True, slots=True)
class Workload:
    """What bounds one process."""

    pid: int
    comm: Fact[str]
    quotas: Fact[tuple[Quota, ...]]
    realtime_budget: Fact[RealtimeBudget]
    realtime_threads: tuple[RealtimeThread, ...]
    allowed: Fact[dict[Allowed, int]]
    cpuset: Fact[Allowed]

    @classmethod
    def read(cls, pid: int, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> Workload:
        groups = hierarchy.groups_of(pid, proc)
        comm, own = text(proc / str(pid) / "comm"), threads.realtime(proc, pid)
        allowed = threads.allowed(pid, proc)
        if isinstance(groups, Unknown):
            return cls(pid, comm, groups, groups, own, allowed, groups)
        return cls(
            pid,
            comm,
            limits.quotas(groups.value, sys),
            limits.group_realtime(groups.value, sys),
            own,
            allowed,
            threads.cpuset(groups.value, sys),
        )
