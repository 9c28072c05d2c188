"""What the kernel itself counts of each thread since its start, and has always counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ThreadCounters:
    """From ``schedstat`` (sched-stats.rst), ``status`` and ``stat`` of proc_pid(5)."""

    comm: str
    run_delay_ns: int
    """Runnable and without a CPU: what quotas and real-time limits had of that, too."""

    voluntary: int
    """Switches in which it went to wait."""

    involuntary: int
    minor_faults: int
    major_faults: int


def of_threads(pid: int, proc: Path = Path("/proc")) -> Mapping[int, ThreadCounters]:
    """By thread id; without those that end meanwhile, and empty for a process that is gone."""
    found = {}
    for directory in (proc / str(pid) / "task").glob("*"):
        try:
            found[int(directory.name)] = _of_thread(directory)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def _of_thread(directory: Path) -> ThreadCounters:
    status = dict(
        line.split(":\t", 1)
        for line in (directory / "status").read_text(errors="replace").splitlines()
        if ":\t" in line
    )
    # After the comm, which may hold any byte, come the fields from the third on.
    stat = (directory / "stat").read_text(errors="replace").rpartition(") ")[2].split()
    return ThreadCounters(
        comm=status["Name"],
        run_delay_ns=int((directory / "schedstat").read_text().split()[1]),
        voluntary=int(status["voluntary_ctxt_switches"]),
        involuntary=int(status["nonvoluntary_ctxt_switches"]),
        minor_faults=int(stat[10 - 3]),
        major_faults=int(stat[12 - 3]),
    )
