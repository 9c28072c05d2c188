"""
The targets and their mark pages: what the kernel side is told of them, and what they have marked.
"""

from __future__ import annotations

import time
from collections import Counter

import numpy as np

from tracer.kernel.btf import wire
from tracer.kernel.trace import KernelTrace
from tracer.ledger.books import PageNames
from tracer.ledger.labels import OTHER, Labels
from tracer.model import Names, Records, Target, join_records
from tracer.targets.mark_file import Refused
from tracer.targets.mark_page import MarkPage
from tracer.targets.processes import Changes

_LIMITS = wire().enum("limits") | wire().enum("stepmark_limits")
_MOST_NAMES = 65_536  # of step kinds, and of tenants: years of a node's, or a hostile engine's
_REMEMBERED_NS = 10_000_000_000  # how long a pid stands for a target that has ended


class _Numbers:
    """Numbers a growing list of names, as ``model.Names`` does. Number 0 is ``other``."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._numbers: dict[str, int] = {}
        self(OTHER)

    def __call__(self, name: str) -> int:
        known = self._numbers.get(name)
        if known is not None or len(self._names) >= _MOST_NAMES:
            return known or 0
        self._numbers[name] = len(self._names)
        self._names.append(name)
        return self._numbers[name]


class Pages:
    """Follows targets in the kernel side, reads their pages, and keeps both sides' numbers."""

    def __init__(self, kernel: KernelTrace, slots: Labels) -> None:
        """``slots`` are the tenants by their slot in the kernel side's histograms."""
        self._kernel, self._slots = kernel, slots
        self.names = Names()
        self._kind, self._tenant = _Numbers(self.names.kinds), _Numbers(self.names.tenants)
        processes = _LIMITS["MAX_PROCESSES"]
        self.page_names = PageNames(
            np.zeros((processes, _LIMITS["STEPMARK_KINDS"]), np.int32),
            np.zeros((processes, _LIMITS["STEPMARK_TENANTS"]), np.int32),
        )
        self.targets: dict[int, Target] = {}
        """By index."""

        self._by_pid: dict[int, Target] = {}
        self._gone_ns: dict[int, int] = {}
        """When the target with this pid had ended: what it did is told of for a while."""

        self._pages: dict[int, MarkPage] = {}
        self._kinds_known = np.ones(processes, np.int32)
        self._tenants_known = np.ones(processes, np.int32)
        self._lost: Counter[str] = Counter()

    def target_of(self, pid: int) -> Target | None:
        """The target with this pid, or the one that had it a moment ago."""
        return self._by_pid.get(pid)

    @property
    def losses(self) -> Counter[str]:
        """Marks that were not read, by reason, of pages that are closed, too."""
        return sum((Counter(page.losses) for page in self._pages.values()), self._lost.copy())

    def follow(self, changes: Changes) -> None:
        """Take over what a scan found, but for the targets that are gone."""
        for target in changes.new:
            self._track(target)
        for target in changes.marked:
            self._open(target)
        if changes.new or changes.marked:
            self._kernel.tag_threads()

    def forget(self, gone: list[Target]) -> None:
        """After the last :meth:`finished`: what they have marked is read by then."""
        for target in gone:
            self._close(target.index)
            self._kernel.forget(target.pid)
            del self.targets[target.index]
            self._gone_ns[target.pid] = time.monotonic_ns()
        if gone:
            self._kernel.tag_threads()
        before = time.monotonic_ns() - _REMEMBERED_NS
        for pid in [pid for pid, ended in self._gone_ns.items() if ended < before]:
            del self._gone_ns[pid], self._by_pid[pid]

    def finished(self, urgent: bool = False) -> Records:
        """
        The marks finished since they were read last: ``struct stepmark_done``, slot and target.

        :param urgent: only of threads whose ring fills up
        """
        least = _LIMITS["STEPMARK_RING"] // 16 if urgent else 1
        batches = [self._read(index, least) for index in list(self._pages)]
        return join_records([_NO_MARKS, *batches])

    def fill(self, marks: Records) -> float:
        """How much of a ring the fullest thread of these marks had used, 0 to 1."""
        if not len(marks):
            return 0.0
        thread = marks["target"].astype(np.int64) * _LIMITS["STEPMARK_SLOTS"] + marks["slot"]
        return float(np.bincount(thread).max()) / _LIMITS["STEPMARK_RING"]

    def _track(self, target: Target) -> None:
        self.targets[target.index] = self._by_pid[target.pid] = target
        self._gone_ns.pop(target.pid, None)
        slot = self._slots.number(target.tenant)
        row = self._kernel.processes[target.index]
        row["tgid"], row["page"], row["tenant"] = target.pid, 0, slot
        row["tenant_slot"] = slot
        row["helper_wait_ns"] = row["helper_worst_ns"] = 0
        self.page_names.tenants[target.index] = self._tenant(target.tenant)
        self.page_names.kinds[target.index] = self._kind(OTHER)
        self._kernel.follow(target.index, target.pid)

    def _open(self, target: Target) -> None:
        self._close(target.index)
        try:
            page = MarkPage.open(target.pid)
        except Refused as refused:
            self._lost[f"page_{refused.reason}"] += 1
            return
        self._pages[target.index] = page
        # The names of a page that was there before are not those of this one.
        self._kinds_known[target.index] = self._tenants_known[target.index] = 1
        self._kernel.processes[target.index]["page"] = page.address

    def _close(self, index: int) -> None:
        page = self._pages.pop(index, None)
        self._kernel.processes[index]["page"] = 0
        if page:
            self._lost.update(page.losses)
            page.close()

    def _read(self, index: int, least: int) -> Records:
        page = self._pages[index]
        try:
            done = page.finished(least)
        except Refused as refused:
            self._lost[f"page_{refused.reason}"] += 1
            self._close(index)
            return _NO_MARKS
        self._number_names(index, page)
        marks = np.empty(len(done), _NO_MARKS.dtype)
        marks[list(done.dtype.names or ())] = done
        marks["target"] = index
        return marks

    def _number_names(self, index: int, page: MarkPage) -> None:
        """Give names that are new in this page a number here, and tenants a slot in the kernel."""
        for at in range(self._kinds_known[index], len(page.kinds)):
            self.page_names.kinds[index, at] = self._kind(page.kinds[at])
        for at in range(self._tenants_known[index], len(page.tenants)):
            self.page_names.tenants[index, at] = self._tenant(page.tenants[at])
            slot = self._slots.number(page.tenants[at])
            self._kernel.processes[index]["tenant_slot"][at] = slot
        self._kinds_known[index] = len(page.kinds)
        self._tenants_known[index] = len(page.tenants)


def _marks_dtype() -> np.dtype[np.void]:
    fields = [(name, at[0]) for name, at in (wire().dtype("stepmark_done").fields or {}).items()]
    return np.dtype([*fields, ("slot", np.uint32), ("target", np.uint32)])


_NO_MARKS: Records = np.zeros(0, _marks_dtype())
