"""
One process as ``/proc`` shows it: each part is read when it is asked for, once, within bounds.

Reading raises OSError when the process is gone, or when it may not be read.
"""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tracer.host.hierarchy import parse_groups
from tracer.targets import cgroups
from tracer.targets.cgroups import Container
from tracer.targets.mark_file import Location, Reason, Refused
from tracer.targets.mark_page import MarkPage
from tracer.targets.pods import FindPod, Pod
from tracer.targets.text import visible

_PF_KTHREAD = 0x00200000  # include/linux/sched.h
_NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_MAX_CMDLINE = 4096
_MAX_BYTES = 1 << 16


@dataclass(frozen=True)
class Process:
    pid: int
    comm: str
    started_ns: int
    """Since boot, in steps of a clock tick. With the pid, names the process for ever."""

    is_kernel_thread: bool
    is_zombie: bool
    """It ended and waits for its parent. One whose main thread alone ended is none."""

    proc: Path
    find_pod: FindPod

    @classmethod
    def read(
        cls, pid: int, proc: Path = Path("/proc"), find_pod: FindPod = lambda uid: None
    ) -> Process:
        """
        See proc_pid_stat(5); the comm may hold any byte, parentheses and spaces too.

        :param find_pod: tells what is known of the pod with a uid
        """
        stat = _read(proc / str(pid) / "stat")
        head, _, tail = stat.rpartition(b") ")
        fields = tail.split()  # from field 3, state, on
        state, flags, threads, started = fields[0], int(fields[6]), int(fields[17]), int(fields[19])
        return cls(
            pid=pid,
            comm=visible(head.partition(b"(")[2]),
            started_ns=started * _NS_PER_TICK,
            is_kernel_thread=bool(flags & _PF_KTHREAD),
            is_zombie=state in (b"Z", b"X") and threads <= 1,
            proc=proc,
            find_pod=find_pod,
        )

    @cached_property
    def cmdline(self) -> str:
        """The arguments joined by spaces."""
        raw = _read(self._path / "cmdline", _MAX_CMDLINE)
        return visible(raw.rstrip(b"\0").replace(b"\0", b" "), _MAX_CMDLINE)

    @cached_property
    def cgroup_paths(self) -> list[str]:
        return list(parse_groups(self._cgroup).values())

    @cached_property
    def container(self) -> Container | None:
        return cgroups.identify(self._cgroup)

    @cached_property
    def pod_uid(self) -> str:
        """Empty outside of a pod."""
        return self.container.pod if self.container else ""

    @cached_property
    def pod(self) -> Pod | None:
        """None outside of a pod, and for a pod of which nothing is known."""
        return self.find_pod(self.pod_uid)

    @cached_property
    def uid(self) -> int:
        """The effective user."""
        lines = _read(self._path / "status").splitlines()
        return int(next(line for line in lines if line.startswith(b"Uid:")).split()[2])

    @cached_property
    def mark_page(self) -> Location | Reason:
        """Where its own mark page lies, or why it has none that is read. Never raises."""
        try:
            with closing(MarkPage.open(self.pid, self.proc)) as page:
                return page.location
        except Refused as refused:
            return refused.reason

    def environment(self, *names: str) -> str:
        """The first of these variables that the process was started with; empty without."""
        found = dict(entry.partition(b"=")[::2] for entry in self._environment)
        return next((visible(found[n.encode()]) for n in names if found.get(n.encode())), "")

    @cached_property
    def _cgroup(self) -> str:
        return _read(self._path / "cgroup").decode(errors="replace")

    @cached_property
    def _environment(self) -> list[bytes]:
        return _read(self._path / "environ").split(b"\0")

    @property
    def _path(self) -> Path:
        return self.proc / str(self.pid)


def _read(path: Path, limit: int = _MAX_BYTES) -> bytes:
    with path.open("rb", buffering=0) as file:
        return file.read(limit)
