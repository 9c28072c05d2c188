"""What the agent costs itself, and what it knows of this machine's steal and timers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import psutil

from tracer import catalog
from tracer.catalog import Metric
from tracer.model import Capability, Family, Records
from tracer.record.meta import Machine

_OURSELVES = psutil.Process()


def own_families(
    drain_seconds: float, run_times: Mapping[str, tuple[int, int]]
) -> Iterator[Family]:
    """
    :param run_times: BPF program -> (ns, runs), zeros while the kernel keeps no such statistics
    """
    cpu = _OURSELVES.cpu_times()
    yield Family(catalog.SELF_CPU, {(): cpu.user + cpu.system})
    yield Family(catalog.SELF_MEMORY, {(): float(_OURSELVES.memory_info().rss)})
    yield Family(catalog.SELF_DRAIN, {(): drain_seconds})
    hooks = {name: ns / 1e9 for name, (ns, runs) in run_times.items() if runs}
    yield by_name(catalog.SELF_BPF, hooks)


def by_name(metric: Metric, values: Mapping[str, float]) -> Family:
    """A family with one label."""
    return Family(metric, {(name,): float(value) for name, value in values.items()})


def machine_families(
    machine: Machine, agent_version: str, capabilities: tuple[Capability, ...], pulses: Records
) -> Iterator[Family]:
    """``pulses`` is ``struct pulse`` (CPUs,)."""
    nodes = "" if machine.numa_nodes is None else str(machine.numa_nodes)
    about = machine.kind, machine.kernel, str(machine.cpus), nodes, agent_version
    yield Family(catalog.MACHINE, {about: 1.0})
    yield Family(
        catalog.PROBE_AVAILABLE,
        {(each.name, each.source): float(each.available) for each in capabilities},
    )
    if any(each.name == "steal" and each.available for each in capabilities):
        times = psutil.cpu_times(percpu=True)
        yield by_name(catalog.STEAL, {str(at): cpu.steal for at, cpu in enumerate(times)})
    beating = np.flatnonzero(pulses["expiries"])
    late, expiries = pulses["late_ns"][beating] / 1e9, pulses["expiries"][beating]
    yield by_name(catalog.TIMER_LATE, dict(zip(map(str, beating), late, strict=True)))
    yield by_name(catalog.TIMER_EXPIRIES, dict(zip(map(str, beating), expiries, strict=True)))
