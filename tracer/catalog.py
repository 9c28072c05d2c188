"""
Everything that has a public name: causes, losses, metrics, labels. Declared once, here.

Dashboards, rules, documentation, exporters and tests read this module. The kernel's side of the
same names is ``bpf/wire.h``, the engine's ``stepmark_page.h``; ``tests/unit/test_catalog.py``
compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Group(StrEnum):
    ON_CPU = "on CPU"
    WANTED = "wanted a CPU"
    WAITED = "waited"
    REMAINDER = "remainder"


@dataclass(frozen=True, slots=True)
class Cause:
    """Where a slice of a step's wall time went."""

    name: str
    group: Group
    help: str
    deschedule: bool = False
    """A runnable thread did not execute. A voluntary wait never is one."""


CAUSES: tuple[Cause, ...] = (
    Cause("running", Group.ON_CPU, "executing on the CPU"),
    Cause("irq", Group.ON_CPU, "interrupt handlers that ran on top of the thread"),
    Cause("softirq", Group.ON_CPU, "deferred interrupt work that ran on top of the thread"),
    Cause("fault", Group.ON_CPU, "handling page faults, the part on the CPU"),
    Cause("numa_migrate", Group.ON_CPU, "moving pages to its node for NUMA balancing, in a fault"),
    Cause("steal", Group.ON_CPU, "the hypervisor ran something else on the CPU", deschedule=True),
    Cause("stall", Group.ON_CPU, "the CPU stood still, and no steal clock says so", True),
    Cause("preempted", Group.WANTED, "another thread was put on the CPU", deschedule=True),
    Cause("runqueue", Group.WANTED, "woken, waiting for its turn on a CPU", deschedule=True),
    Cause("quota", Group.WANTED, "throttled: the group's CFS quota was used up", deschedule=True),
    Cause("rt_limit", Group.WANTED, "throttled: real-time budget or fair server", deschedule=True),
    Cause("lock", Group.WAITED, "futex, file lock or semaphore"),
    Cause("io", Group.WAITED, "storage"),
    Cause("fault_io", Group.WAITED, "blocked inside a page fault"),
    Cause("net", Group.WAITED, "a peer: socket, pipe, poll, epoll"),
    Cause("gpu", Group.WAITED, "an accelerator's driver"),
    Cause("sleep", Group.WAITED, "asked to sleep"),
    Cause("other_wait", Group.WAITED, "another voluntary wait"),
    Cause("unexplained", Group.REMAINDER, "wall time that the ledger does not account for"),
)

DESCHEDULES: tuple[str, ...] = tuple(cause.name for cause in CAUSES if cause.deschedule)

TO_OTHERS = ("preempted", "runqueue")
"""Waits for a CPU that another thread had, and no limit kept from it."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that is counted besides time, per step."""

    name: str
    metric: Metric
    kind: str
    """The metric's label of that name."""

    capability: str
    """Where that is missing, the event is not counted."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that was not counted, and why."""

    name: str
    help: str
    falsifies: bool = True
    """A ledger or a histogram is wrong by it. Else only a name is not known, or history."""


KERNEL_LOSSES: tuple[Loss, ...] = (
    Loss("pieces_ring_full", "a piece of a step's ledger found no room on its way to the agent"),
    Loss("outliers_ring_full", "a long deschedule found no room on its way to the agent"),
    Loss("thread_storage", "the kernel had no memory to follow a thread"),
    Loss("mark_unreadable", "the mark page was not in memory when its thread left the CPU"),
    Loss("mark_implausible", "a mark from the future, or in a slot that another thread holds"),
    Loss("switch_unseen", "a thread got or left the CPU without an event that said so"),
    Loss("clock_backwards", "a time stamp older than the one before it on the same thread"),
    Loss("blame_overwritten", "a wait longer than its CPU remembers who ran", falsifies=False),
    Loss("blame_migrated", "a waiting thread was moved: who ran before is not known", False),
    Loss("steal_backwards", "the hypervisor's steal clock ran backwards"),
    Loss("stalls_ring_full", "a stall of a CPU found no room on its way to the agent"),
    Loss("touches_full", "no room to say who touched a page of a shared segment first", False),
    Loss("touch_unplaced", "a new page of which it is not known whether it is shared", False),
)
"""In the order of ``enum lost``."""

ENGINE_LOSSES: tuple[Loss, ...] = (
    Loss("mark_slots_full", "an engine's thread found no free slot for its marks"),
    Loss("mark_kinds_full", "an engine has more kinds of steps than fit into its mark page"),
    Loss("mark_tenants_full", "an engine has more tenants than fit into its mark page"),
    Loss("mark_shares_full", "a step served more tenants than one mark can hold"),
)
"""In the order of ``struct stepmark_header``, whose fields say ``lost`` for ``mark``."""

AGENT_LOSSES: tuple[Loss, ...] = (
    Loss("mark_overrun", "marks that a ring no longer held when it was read"),
    Loss("mark_torn", "a mark that was being written whenever it was read"),
    Loss("mark_too_deep", "a stage in more stages than are followed"),
    Loss("held_marks_full", "marks that waited too long for the kernel's side of their step"),
    Loss("held_pieces_full", "pieces of ledgers that waited too long for the mark of their step"),
    Loss("piece_late", "a piece of a ledger whose step was given up before"),
    Loss("piece_without_mark", "a piece of a ledger whose step was never marked as finished"),
    Loss("piece_step_unknown", "a piece of a stage that was never marked, given to its step"),
    Loss("steal_unplaced", "more steal at the end of a step than time on the CPU"),
    Loss("stall_unplaced", "a longer stall at the end of a step than time on the CPU"),
    Loss("stalls_not_kept", "stalls beyond those that are kept one by one", falsifies=False),
    Loss("ledger_beyond_step", "a step whose ledger has more time than its marks"),
    Loss("history_unwritten", "ten seconds that could not be written into recent history", False),
)

TARGET_LOSSES: tuple[Loss, ...] = (
    Loss("targets_full", "a process that matched a rule while as many as possible were traced"),
    Loss("target_unreadable", "a process of which a rule asks what may not be read"),
    Loss("page_unreadable", "a mark page that may not be read"),
    Loss("page_inherited", "a mark page of the process that forked this one"),
    Loss("page_time_namespace", "a process with another monotonic clock"),
    Loss("page_not_memfd", "a mark page that is no memfd"),
    Loss("page_bad_magic", "a mark page without the signature of one"),
    Loss("page_bad_version", "a mark page of a version that is not known"),
    Loss("page_bad_size", "a mark page whose sizes are not those of its version"),
    Loss("page_truncated", "a mark page that is cut short"),
)
"""Processes that are not traced as configured, and why."""

KUBELET_LOSSES: tuple[Loss, ...] = (
    Loss(
        "kubelet_credentials",
        "no token, or no certificates to know the kubelet by",
        falsifies=False,
    ),
    Loss("kubelet_unreachable", "a kubelet that does not answer, or not in time", falsifies=False),
    Loss("kubelet_untrusted", "a kubelet whose certificate is not vouched for", falsifies=False),
    Loss("kubelet_refuses", "a kubelet that does not let us see its pods", falsifies=False),
    Loss(
        "kubelet_implausible",
        "a kubelet that told no list of pods, or one beyond all bounds",
        falsifies=False,
    ),
)
"""Requests for the node's pods that were in vain, and why."""

LOSSES: tuple[Loss, ...] = (
    KERNEL_LOSSES + ENGINE_LOSSES + AGENT_LOSSES + TARGET_LOSSES + KUBELET_LOSSES
)
HARMLESS_LOSSES: tuple[str, ...] = tuple(loss.name for loss in LOSSES if not loss.falsifies)

CAPABILITIES: dict[str, str] = {
    "switch": "when a thread leaves and gets a CPU",
    "why it left": "whether it was preempted or waits for something",
    "quota": "throttling by a CFS quota",
    "rt_limit": "throttling by a real-time budget or the fair server",
    "irq": "time in interrupt handlers",
    "softirq": "time in deferred interrupt work",
    "fault count": "minor and major page faults",
    "fault": "time on the CPU in page faults",
    "cache moves": "moves of threads between last-level caches",
    "node moves": "moves of threads between NUMA nodes",
    "allocations": "on which node a thread's new pages are",
    "first touch": "who touched pages of shared segments first",
    "hint faults": "faults that NUMA balancing provokes",
    "balancing": "what NUMA balancing does with threads",
    "numa_migrate": "time on the CPU in moving pages for NUMA balancing",
    "page moves": "pages that move between nodes, and why",
    "gpu": "waits in an accelerator's driver",
    "steal": "time that the hypervisor took",
    "stall": "time in which a CPU stood still, without a steal clock",
    "placement": "on which NUMA node memory is, against where threads run",
    "remote access": "which single accesses to memory went to another node",
    "marks": "steps that engines of any user mark",
    "pods": "names, labels and annotations of pods",
}
OPTIONAL_CAPABILITIES = frozenset(
    {"gpu", "steal", "placement", "remote access", "fault", "cache moves", "node moves"}
    | {"allocations", "first touch", "hint faults", "balancing", "numa_migrate", "page moves"}
)
"""
Rightly missing on some machines: without a hypervisor nothing is stolen, with one node nothing is
remote, and a kernel may forbid that its functions are traced.
"""

SCOPES: dict[str, str] = {
    "one": "one CPU, while others ran",
    "some": "several CPUs together, while others ran",
    "all_but_one": "all CPUs that could tell but one",
    "all": "several CPUs, and none was seen to run: the machine was stopped",
    "unknown": "one CPU, and no other could tell",
}
"""Which CPUs stood still together."""


class Type(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """
    A metric family as it is exported.

    Names follow Prometheus' rules: base units, no quantiles of quantiles, and labels over which a
    sum makes sense.
    """

    name: str
    type: Type
    labels: tuple[str, ...]
    help: str


DESCHEDULE = Metric(
    "tailtrace_deschedule_seconds",
    Type.HISTOGRAM,
    ("tenant", "cause"),
    "Intervals in which a runnable inference thread did not execute.",
)
DESCHEDULE_P999 = Metric(
    "tailtrace_deschedule_p999_seconds",
    Type.GAUGE,
    ("tenant",),
    "99.9th percentile of deschedule intervals of all causes over the agent's window.",
)
DESCHEDULE_WINDOW_COUNT = Metric(
    "tailtrace_deschedule_window_count",
    Type.GAUGE,
    ("tenant",),
    "Deschedule intervals in the window: below 1,000 the p999 is the maximum.",
)
STEP_ELAPSED = Metric(
    "tailtrace_step_elapsed_seconds",
    Type.HISTOGRAM,
    ("tenant", "step"),
    "Wall time of inference steps.",
)
STEP_RATIO = Metric(
    "tailtrace_step_elapsed_p999_p50_ratio",
    Type.GAUGE,
    ("tenant", "step"),
    "99.9th percentile of step wall time over its median, over the agent's window.",
)
STEP_SECONDS = Metric(
    "tailtrace_step_seconds_total",
    Type.COUNTER,
    ("tenant", "step", "cause"),
    "Wall time of inference steps by cause. Stages are in their steps, and have rows of their own.",
)
STEP_IS_STAGE = Metric(
    "tailtrace_step_is_stage",
    Type.GAUGE,
    ("tenant", "step"),
    "1 for a kind of step that is a stage of another, else 0.",
)
BLAME = Metric(
    "tailtrace_blame_seconds_total",
    Type.COUNTER,
    ("victim", "aggressor", "cause"),
    "Time that a tenant's threads wanted a CPU, by who had it.",
)
QUEUE_WAIT = Metric(
    "tailtrace_queue_wait_seconds",
    Type.HISTOGRAM,
    ("tenant",),
    "Time requests waited in the engine's queue, as the engine marked it.",
)
HELPER_WAIT = Metric(
    "tailtrace_helper_deschedule_seconds_total",
    Type.COUNTER,
    ("tenant", "step"),
    "Deschedule of a process's unmarked threads while a step was under way.",
)
PAGE_FAULTS = Metric(
    "tailtrace_page_faults_total",
    Type.COUNTER,
    ("tenant", "kind"),
    "Page faults of a tenant's threads in steps and out of them: minor, or major from storage.",
)
PAGE_ALLOCATIONS = Metric(
    "tailtrace_page_allocations_total",
    Type.COUNTER,
    ("tenant", "kind"),
    "Pages that a tenant's threads got, local or remote to the CPU that asked.",
)
HINT_FAULTS = Metric(
    "tailtrace_numa_hint_faults_total",
    Type.COUNTER,
    ("tenant", "kind"),
    "Page faults that NUMA balancing provoked, with the page local or remote to the CPU.",
)
NUMA_MIGRATIONS = Metric(
    "tailtrace_numa_migrations_total",
    Type.COUNTER,
    ("tenant", "kind"),
    "Pages that a tenant's threads moved: for the NUMA balancer, at their own request, or other.",
)
THREAD_MOVES = Metric(
    "tailtrace_thread_moves_total",
    Type.COUNTER,
    ("tenant", "kind"),
    "Moves of a tenant's threads to a CPU of another node, or of another cache on the same node.",
)
NUMA_BALANCING = Metric(
    "tailtrace_numa_balancing_total",
    Type.COUNTER,
    ("tenant", "kind"),
    "What NUMA balancing did with a tenant's threads: move, swap with another, or stick.",
)
STEAL = Metric(
    "tailtrace_steal_seconds_total",
    Type.COUNTER,
    ("cpu",),
    "Time the hypervisor ran something else on this CPU. Absent when it cannot be told.",
)
STALL = Metric(
    "tailtrace_stall_seconds",
    Type.HISTOGRAM,
    ("scope",),
    "Times in which CPUs stood still together, without what a steal clock tells of them.",
)
TIMER_LATE = Metric(
    "tailtrace_timer_late_seconds_total",
    Type.COUNTER,
    ("cpu",),
    "By how much hard timers expired late where that was too little for a stall.",
)
TIMER_EXPIRIES = Metric(
    "tailtrace_timer_expiries_total",
    Type.COUNTER,
    ("cpu",),
    "Hard timers that expired. A CPU on which none do cannot tell that it stood still.",
)
NUMASTAT_PAGES = Metric(
    "tailtrace_numastat_pages_total",
    Type.COUNTER,
    ("node", "counter"),
    "Pages allocated from a node, but for huge ones. Absent when nodes cannot be told.",
)
NUMASTAT_DRIFT = Metric(
    "tailtrace_numastat_drift_ratio",
    Type.GAUGE,
    ("node",),
    "Share of the node's allocations that went to CPUs of other nodes in the last window, less what"
    " is usual: the median of the windows before.",
)
PLACEMENT_PAGES = Metric(
    "tailtrace_placement_pages",
    Type.GAUGE,
    ("tenant", "segment", "node"),
    "Pages of a tenant's processes by the node they are on. A segment that several share counts for"
    " each tenant.",
)
PLACEMENT_MISMATCH = Metric(
    "tailtrace_placement_mismatch_ratio",
    Type.GAUGE,
    ("tenant",),
    "Half the sum of |share of runtime - share of pages| over nodes: 1 when no memory is where the"
    " tenant's threads run.",
)
MACHINE = Metric(
    "tailtrace_machine_info",
    Type.GAUGE,
    ("kind", "kernel", "cpus", "numa_nodes", "version"),
    "1, with what this machine is and which agent is on it.",
)
PROBE_AVAILABLE = Metric(
    "tailtrace_probe_available",
    Type.GAUGE,
    ("capability", "source"),
    "1 when the capability is told by this source; 0 with source none when it cannot be told.",
)
LOST = Metric(
    "tailtrace_lost_total",
    Type.COUNTER,
    ("reason",),
    "What was not counted, by reason.",
)
TARGETS = Metric("tailtrace_targets", Type.GAUGE, ("tenant",), "Processes that are traced now.")
SELF_CPU = Metric(
    "tailtrace_self_cpu_seconds_total", Type.COUNTER, (), "CPU time of the agent itself."
)
SELF_MEMORY = Metric(
    "tailtrace_self_resident_bytes", Type.GAUGE, (), "Resident memory of the agent itself."
)
SELF_BPF = Metric(
    "tailtrace_self_bpf_seconds_total",
    Type.COUNTER,
    ("hook",),
    "Time in the agent's BPF programs; only while kernel.bpf_stats_enabled is 1.",
)
SELF_PLACEMENT = Metric(
    "tailtrace_self_placement_seconds_total",
    Type.COUNTER,
    (),
    "Time the agent spent on looking where memory is and threads run.",
)
SELF_DRAIN = Metric(
    "tailtrace_self_drain_seconds_total",
    Type.COUNTER,
    (),
    "Time the agent spent joining marks with kernel records.",
)

EVENTS: tuple[Event, ...] = (
    Event("fault_minor", PAGE_FAULTS, "minor", "fault count"),
    Event("fault_major", PAGE_FAULTS, "major", "fault count"),
    Event("alloc_local", PAGE_ALLOCATIONS, "local", "allocations"),
    Event("alloc_remote", PAGE_ALLOCATIONS, "remote", "allocations"),
    Event("hint_local", HINT_FAULTS, "local", "hint faults"),
    Event("hint_remote", HINT_FAULTS, "remote", "hint faults"),
    Event("migrate_balancer", NUMA_MIGRATIONS, "balancer", "page moves"),
    Event("migrate_request", NUMA_MIGRATIONS, "request", "page moves"),
    Event("migrate_other", NUMA_MIGRATIONS, "other", "page moves"),
    Event("move_cache", THREAD_MOVES, "cache", "cache moves"),
    Event("move_node", THREAD_MOVES, "node", "node moves"),
    Event("balance_move", NUMA_BALANCING, "move", "balancing"),
    Event("balance_swap", NUMA_BALANCING, "swap", "balancing"),
    Event("balance_stick", NUMA_BALANCING, "stick", "balancing"),
)
"""In the order of ``enum event``."""

METRICS: tuple[Metric, ...] = tuple(v for v in globals().values() if isinstance(v, Metric))

LABELS: dict[str, str] = {
    "tenant": "whom the work is for; those beyond the configured number are `other`",
    "step": "kind of step, as the engine marked it",
    "cause": "where the time went",
    "victim": "the tenant that waited",
    "aggressor": "who had the CPU: a tenant, a container or a pool of threads; or a limit's name",
    "cpu": "number of the CPU",
    "scope": "which CPUs stood still together",
    "node": "number of the NUMA node",
    "counter": "`local` and `other`: for a CPU of this node, of another; `hit` and `foreign`:"
    " wanted from this node, and served by it, by another",
    "segment": "`private`, or a shared segment's name; those beyond the configured number are"
    " `other`",
    "kind": "which of the events that a metric counts; or what a machine is",
    "kernel": "its release",
    "cpus": "how many",
    "numa_nodes": "that the machine shows; empty where it does not say",
    "version": "of the agent",
    "capability": "what the tracer can tell, or not",
    "source": "where the kernel tells it",
    "reason": "why something was not counted",
    "hook": "the BPF program",
}
