"""
What this kernel allows: every capability with its alternatives, asked from the kernel's types.

The first alternative that exists is used. What has none is reported with the reason and never
counted as zero. Kernels differ by distribution as much as by version, so versions are not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tracer.errors import UnavailableError
from tracer.host.facts import value_of, why
from tracer.host.hypervisor import Hypervisor
from tracer.host.privileges import Privilege, in_words, lacking
from tracer.host.topology import Topology
from tracer.kernel import fentry
from tracer.kernel.btf import Btf
from tracer.kernel.memory_hooks import memory_hooks, merged
from tracer.model import Capability

SCHEDULER = (
    "on_switch",
    "on_wakeup",
    "on_wakeup_new",
    "on_migrate",
    "on_fork",
    "on_exit",
    "tag_threads",
)
# Time the CPU spends in interrupts: the tracepoint pairs of which a kernel has some.
INTERRUPTS = ("irq_handler", "local_timer", "call_function", "call_function_single", "ipi")
TIMERS = ("on_timer_expiry", "on_timer_expired")
_ACCELERATORS = ("nvidia", "drm", "kfd", "accel", "habanalabs", "neuron")
_MAX_ACCELERATORS = 8  # NR_ACCELERATORS in bpf/wait.bpf.h
# Linux dd6e10fbd9fb ("bpf: Add bpf_task_pt_regs() helper"): kernels that have it have all others.
_NEWEST_HELPER = "BPF_FUNC_task_pt_regs"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to load on this machine, and what it will be able to tell."""

    steal_source: str
    """How the kernel side reads the steal clock: ``rq``, ``cpustat`` or ``none``. Whether there is
    one, the capability says."""

    programs: tuple[str, ...]
    functions: Mapping[str, str]
    """Program -> the kernel function that it is for, where its source does not name one."""

    constants: dict[str, int | list[int]]
    capabilities: tuple[Capability, ...]

    @property
    def stem(self) -> str:
        """The object: one per way to read the steal clock."""
        return "tailtrace_cpustat" if self.steal_source == "cpustat" else "tailtrace"


def plan(
    kernel: Btf, nodes_doubted: str = "", proc: Path = Path("/proc"), sys: Path = Path("/sys")
) -> Plan:
    """
    Choose the alternatives for the kernel whose types are given.

    Raises UnavailableError for a kernel that lacks what has no alternative.

    :param nodes_doubted: why the NUMA nodes that the machine shows mean nothing; empty if they do
    :param proc: and ``sys``: whether the machine is virtual and has a steal clock, and its topology
    """
    if _NEWEST_HELPER not in kernel.enum("bpf_func_id"):
        raise UnavailableError(
            "this kernel is older than Linux 5.15: its BPF programs cannot read the registers of a "
            "thread (bpf_task_pt_regs), and so not what it waits for"
        )
    interrupts = [name for name in INTERRUPTS if kernel.tracepoint_arguments(f"{name}_entry")]
    hypervisor = Hypervisor.read(proc, sys)
    stall = _stall(kernel, hypervisor)
    steal_source = _steal_source(kernel, proc, hypervisor)
    refusal = partial(fentry.refusal, kernel)
    memory = merged(memory_hooks(kernel, refusal, Topology.read(sys), nodes_doubted))
    return Plan(
        steal_source,
        programs=(
            *SCHEDULER,
            "on_softirq_entry",
            "on_softirq_exit",
            *(f"on_{name}_{end}" for name in interrupts for end in ("entry", "exit")),
            *memory.programs,
            *(TIMERS if stall.available else ()),
        ),
        functions=memory.functions,
        constants={
            "has_prev_state": (kernel.tracepoint_arguments("sched_switch") or 0) >= 4,
            "has_steal_clock": steal_source != "none",
            "accelerator_majors": _accelerator_majors(proc),
            **memory.constants,
        },
        capabilities=(
            *_scheduling(kernel),
            Capability("irq", "+".join(interrupts) or "none", _missing(interrupts)),
            Capability("softirq", "tp_btf"),
            *memory.capabilities,
            _gpu(proc),
            _steal(steal_source, hypervisor),
            stall,
            _marks(proc),
        ),
    )


def _missing(interrupts: list[str]) -> str:
    return "" if interrupts else "no interrupt tracepoint in this kernel's BTF"


def _scheduling(kernel: Btf) -> Iterator[Capability]:
    arguments = kernel.tracepoint_arguments("sched_switch")
    state = "argument" if (arguments or 0) >= 4 else "task.__state"
    yield Capability("switch", "tp_btf" if arguments else "none")
    yield Capability("why it left", f"preempt+{state}")
    yield _first(
        "quota",
        "built without CONFIG_CFS_BANDWIDTH",
        ("task.throttled", kernel.has_field("task_struct", "throttled")),
        ("cfs_rq.throttle_count", kernel.has_field("cfs_rq", "throttle_count")),
    )
    limits = {
        "group": kernel.has_field("task_struct", "rt", "rt_rq"),
        "cpu": kernel.has_field("rq", "rt", "rt_throttled"),
        "fair_server": kernel.has_field("task_struct", "dl_server"),
    }
    present = "+".join(name for name, there in limits.items() if there)
    yield Capability("rt_limit", present or "none", "" if present else "no RT limit in BTF")


def _first(name: str, reason: str, *alternatives: tuple[str, bool]) -> Capability:
    for source, available in alternatives:
        if available:
            return Capability(name, source)
    return Capability(name, "none", reason)


def _gpu(proc: Path) -> Capability:
    there = any(_accelerator_majors(proc))
    return Capability(
        "gpu",
        "device files" if there else "none",
        "" if there else "no accelerator's driver is loaded",
    )


def _accelerator_majors(proc: Path) -> list[int]:
    """Device numbers of known accelerators' drivers, padded to what the kernel side holds."""
    majors = []
    for line in (proc / "devices").read_text().partition("Block devices")[0].splitlines():
        number, _, name = line.strip().partition(" ")
        if name.startswith(_ACCELERATORS):
            majors.append(int(number))
    return (majors + [0] * _MAX_ACCELERATORS)[:_MAX_ACCELERATORS]


def _marks(proc: Path) -> Capability:
    """Whether mark pages of other users' engines may be read: see ``tracer.targets.mark_file``."""
    if missing := lacking(Privilege.SYS_PTRACE, Privilege.DAC_READ_SEARCH, proc=proc):
        reason = f"the agent lacks {in_words(missing)}: it sees no engines of other users"
        return Capability("marks", "none", reason)
    if missing := lacking(Privilege.CHECKPOINT_RESTORE, proc=proc):
        reason = f"the agent lacks {in_words(missing)}: it sees no engines that closed their page"
        return Capability("marks", "fd", reason)
    return Capability("marks", "map_files")


def _steal_source(kernel: Btf, proc: Path, hypervisor: Hypervisor) -> str:
    """A clock that has told of nothing yet may do so at any time: it is read all the same."""
    if value_of(hypervisor.steal_clock) is False:
        return "none"
    if kernel.has_field("rq", "prev_steal_time_rq"):
        return "rq"
    return "cpustat" if _lists_symbol(proc, "kernel_cpustat") else "none"


def _steal(source: str, hypervisor: Hypervisor) -> Capability:
    if not value_of(hypervisor.steal_clock):
        return Capability("steal", "none", why(hypervisor.steal_clock))
    unreadable = "CONFIG_PARAVIRT_TIME_ACCOUNTING or CONFIG_KALLSYMS_ALL is needed to read it"
    return Capability("steal", source, unreadable if source == "none" else "")


def _stall(kernel: Btf, hypervisor: Hypervisor) -> Capability:
    if kernel.tracepoint_arguments("hrtimer_expire_entry") is None:
        return Capability("stall", "none", "no hrtimer tracepoints in this kernel's BTF")
    # Without a hypervisor, whatever keeps a CPU from its timers is nearer to it.
    bare_metal = value_of(hypervisor.virtual) is False
    return Capability("stall", "hrtimer: irqs_off or firmware" if bare_metal else "hrtimer")


def _lists_symbol(proc: Path, symbol: str) -> bool:
    with (proc / "kallsyms").open() as symbols:
        return any(line.split()[2] == symbol for line in symbols)
