"""
Which processes are traced: found by listing ``/proc``, known by pid and start time together.

The process connector would tell of them at once, but its client costs 18 MB of resident memory, a
third of the budget, and it hears nothing inside a container's network namespace. Listing a thousand
processes takes about a millisecond.
"""

from __future__ import annotations

import math
import os
import time
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tracer.config import Config
from tracer.kernel import btf
from tracer.model import Target
from tracer.targets.cgroups import Container
from tracer.targets.mark_file import Location, Reason
from tracer.targets.pod_watch import PodWatch
from tracer.targets.process import Process
from tracer.targets.rules import Rules

_AGES = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""When a process is looked at again, in seconds of its age: it may map its page late."""

_UNREMARKABLE = (Reason.NO_PAGE, Reason.GONE)


@dataclass(frozen=True, slots=True)
class Changes:
    """What a scan found to be different from the scan before."""

    gone: list[Target] = field(default_factory=list)
    """Take these away first: a process that changed its name is gone and new at once."""

    new: list[Target] = field(default_factory=list)
    marked: list[Target] = field(default_factory=list)
    """Targets, new ones too, whose mark page appeared or was replaced: open it."""


@dataclass(slots=True)
class _Known:
    """What is remembered of a process between looks."""

    inode: int
    """Of its directory in /proc: another process, even of the same pid, has another."""

    started_ns: int
    look_at: float = math.inf
    """Seconds since boot; infinite: never again."""

    page: Location | Reason = Reason.NO_PAGE
    target: Target | None = None
    found_no_room: bool = False


def since_boot() -> float:
    """Seconds, on the clock of start times in /proc."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Processes:
    """The processes of this machine, as the configuration sees them."""

    def __init__(
        self,
        config: Config,
        proc: Path = Path("/proc"),
        clock: Callable[[], float] = since_boot,
        pods: PodWatch | None = None,
    ) -> None:
        """Raises UsageError for a rule about a user that this machine does not know."""
        self._proc = proc
        self._pods = pods or PodWatch(config.kubelet)
        self._clock = clock
        self._ourselves = int((proc / "self").readlink().name)
        self._rules = Rules(config.targets)
        self._known: dict[int, _Known] = {}
        # Oldest first: kernel records of one that is gone may still be on their way.
        self._free = deque(range(1, btf.wire().enum("limits")["MAX_PROCESSES"]))
        self._losses: Counter[str] = Counter()

    @property
    def losses(self) -> Mapping[str, int]:
        """
        Processes that are not traced as configured, by reason: ``targets_full``,
        ``target_unreadable``, and ``page_`` with the reason for which a mark page is refused.
        """
        return self._losses

    def describe(self, pid: int) -> tuple[str, Container | None] | None:
        """Comm and container of any process; None when it is gone."""
        try:
            process = Process.read(pid, self._proc)
            described = process.comm, process.container
        except OSError:
            return None
        return described

    def scan(self) -> Changes:
        """
        Look at every process that is new, or of an age to be looked at again.

        Up to 30 s of age that is at growing distances, then every 30 s.
        """
        changes, now = Changes(), self._clock()
        listed = self._list()
        for pid in self._known.keys() - listed.keys():
            self._forget(pid, changes)
        for pid, inode in listed.items():
            known = self._known.get(pid)
            if known is None or known.inode != inode or known.look_at <= now:
                self._look(pid, inode, now, changes)
        return changes

    def _list(self) -> dict[int, int]:
        """pid -> inode of its directory."""
        with os.scandir(self._proc) as entries:
            return {int(e.name): e.inode() for e in entries if e.name.isdecimal()}

    def _look(self, pid: int, inode: int, now: float, changes: Changes) -> None:
        try:
            process = Process.read(pid, self._proc, self._pods.find)
        except OSError:  # gone since it was listed
            self._forget(pid, changes)
            return
        known = self._known.get(pid)
        if known is None or known.started_ns != process.started_ns:
            self._forget(pid, changes)
            known = self._known[pid] = _Known(inode, process.started_ns)
        known.inode = inode
        if process.is_kernel_thread or pid == self._ourselves:
            return
        if known.target is None and self._may_be_told_of(process):
            known.look_at = now
            return
        known.look_at = now + _until_next_look(now - process.started_ns / 1e9)
        is_new = self._follow_rules(process, known, changes)
        self._follow_page(process, known, is_new, changes)

    def _may_be_told_of(self, process: Process) -> bool:
        """Whether the kubelet is being asked for its pod: then no rule is tried yet."""
        try:
            return process.pod is None and self._pods.is_asking_for(process.pod_uid)
        except OSError:  # gone since it was listed, or not readable, as the rules will say
            return False

    def _follow_rules(self, process: Process, known: _Known, changes: Changes) -> bool:
        """Make the process a target, or no longer one; True when it became one now."""
        tenant, target = self._tenant_of(process), known.target
        if target and (target.name, target.tenant) != (process.comm, tenant):
            self._drop(known, changes)
        if tenant is None or known.target:
            return False
        return self._add(process, tenant, known, changes)

    def _tenant_of(self, process: Process) -> str | None:
        try:
            return None if process.is_zombie else self._rules.tenant_of(process)
        except PermissionError:
            self._losses["target_unreadable"] += 1
        except OSError:  # gone since it was listed
            pass
        return None

    def _add(self, process: Process, tenant: str, known: _Known, changes: Changes) -> bool:
        if not self._free:
            self._losses["targets_full"] += not known.found_no_room
            known.found_no_room = True
            return False
        known.target = Target(
            self._free.popleft(), process.pid, process.started_ns, process.comm, tenant
        )
        changes.new.append(known.target)
        return True

    def _follow_page(self, process: Process, known: _Known, is_new: bool, changes: Changes) -> None:
        page, before, known.page = process.mark_page, known.page, process.mark_page
        if isinstance(page, Location):
            if known.target and (is_new or page != before):
                changes.marked.append(known.target)
        elif page != before and page not in _UNREMARKABLE:
            self._losses[f"page_{page}"] += 1

    def _forget(self, pid: int, changes: Changes) -> None:
        known = self._known.pop(pid, None)
        if known:
            self._drop(known, changes)

    def _drop(self, known: _Known, changes: Changes) -> None:
        if known.target:
            changes.gone.append(known.target)
            self._free.append(known.target.index)
            known.target = None


def _until_next_look(age: float) -> float:
    """Seconds from this age to the next at which a process is looked at."""
    at = bisect_right(_AGES, age)
    if at < len(_AGES):
        return _AGES[at] - age
    last = _AGES[-1]
    return last - age % last
