"""The kernel side as the agent has it: planned for a machine, told what the configuration says."""

from __future__ import annotations

from collections.abc import Iterable

from tracer.config import Config
from tracer.host.machine import Machine
from tracer.judge import locality
from tracer.kernel.btf import Btf
from tracer.kernel.hooks import plan
from tracer.kernel.trace import KernelTrace
from tracer.memory.accesses import remote_accesses
from tracer.model import Capability


def kernel_side(config: Config, machine: Machine) -> KernelTrace:
    """Begins to load. Raises UnavailableError where this kernel cannot be traced."""
    return KernelTrace(
        plan(Btf.of_kernel(), locality.doubt(machine)),
        tenant_slots=config.tenants.max + 1,
        outlier_ns=int(config.outlier_ms * 1e6),
        stall_ns=int(config.stall_ms * 1e6),
        probe_hz=config.stall_probe_hz,
    )


def capabilities(
    planned: Iterable[Capability], placement: Capability, pods: Iterable[Capability]
) -> tuple[Capability, ...]:
    """Everything that can be told here, or not: by the kernel side, and without it."""
    return (*planned, placement, remote_accesses(), *pods)
