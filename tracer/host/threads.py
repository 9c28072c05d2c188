"""How threads may run: scheduling policy, allowed CPUs and memory nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tracer.host.facts import Fact, Known, Unknown, cpus, entries, parse_cpus, text, value_of
from tracer.host.hierarchy import Groups, chain

_POLICIES = {1: "FIFO", 2: "RR", 6: "DEADLINE"}  # include/uapi/linux/sched.h
_PF_KTHREAD = 0x00200000  # include/linux/sched.h


@dataclass(frozen=True, slots=True)
class RealtimeThread:
    pid: int
    tid: int
    comm: str
    policy: str
    priority: int


@dataclass(frozen=True, slots=True)
class Allowed:
    """Where threads of one kind may run and allocate."""

    cpus: frozenset[int]
    nodes: frozenset[int]


def realtime(proc: Path = Path("/proc"), pid: int | None = None) -> tuple[RealtimeThread, ...]:
    """Threads of programs, of one or of all; the kernel's own are left out."""
    processes = [proc / str(pid)] if pid else entries(proc, "[0-9]*")
    return tuple(found for process in processes for found in _realtime(process))


def allowed(pid: int, proc: Path = Path("/proc")) -> Fact[dict[Allowed, int]]:
    """Each set of CPUs and memory nodes that threads of a process may use -> number of threads."""
    counts: dict[Allowed, int] = {}
    for thread in entries(proc / str(pid) / "task", "[0-9]*"):
        status = value_of(text(thread / "status"))
        if status is not None:  # else it ended meanwhile
            each = parse_allowed(status)
            counts[each] = counts.get(each, 0) + 1
    if not counts:
        return Unknown(f"process {pid} has no thread that can be read")
    return Known(counts, f"{proc}/{pid}/task/*/status")


def parse_allowed(status: str) -> Allowed:
    """``/proc/PID/task/TID/status``: affinity and cpuset together, as the kernel enforces them."""
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return Allowed(
        parse_cpus(fields["Cpus_allowed_list"].strip()),
        parse_cpus(fields["Mems_allowed_list"].strip()),
    )


def cpuset(groups: Groups, sys: Path = Path("/sys")) -> Fact[Allowed]:
    """What the process's group leaves it: threads narrow this further."""
    directories = chain(groups, "cpuset", sys)
    if isinstance(directories, Unknown):
        return directories
    names = ("cpuset.effective_cpus", "cpuset.effective_mems")
    if (directories.value[0] / "cpuset.cpus.effective").exists():
        names = ("cpuset.cpus.effective", "cpuset.mems.effective")
    on, of = (cpus(directories.value[0] / name) for name in names)
    if isinstance(on, Unknown) or isinstance(of, Unknown):
        return on if isinstance(on, Unknown) else Unknown(f"{names[1]} cannot be read")
    return Known(Allowed(on.value, of.value), on.source)


def _realtime(process: Path) -> Iterator[RealtimeThread]:
    for thread in entries(process / "task", "[0-9]*"):
        head, _, tail = (value_of(text(thread / "stat")) or "").rpartition(") ")
        fields = tail.split()  # from field 3 of proc_pid_stat(5) on
        if len(fields) < 39 or int(fields[6]) & _PF_KTHREAD:
            continue
        priority, policy = int(fields[37]), int(fields[38])
        if policy in _POLICIES:
            comm = head.partition("(")[2]
            yield RealtimeThread(
                int(process.name), int(thread.name), comm, _POLICIES[policy], priority
            )
