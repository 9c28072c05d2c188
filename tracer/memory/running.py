"""On which nodes the threads of a process spend their CPU time."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from tracer.host.facts import entries, text, value_of
from tracer.host.topology import Node

_TICKS = os.sysconf("SC_CLK_TCK")


class RunTimes:
    """
    CPU time by node, from looks at ``/proc/PID/task/*/stat``.

    What a thread ran between two looks is halved between the nodes that it was on at either: exact
    for threads that stay on a node, and right on average for those that roam.
    """

    def __init__(self, nodes: Iterable[Node], proc: Path = Path("/proc")) -> None:
        self._node_of = {cpu: node.number for node in nodes for cpu in node.cpus}
        self._proc = proc
        self._before: dict[int, dict[int, tuple[int, int]]] = {}
        self._seconds: dict[int, dict[int, float]] = {}

    def look(self, pid: int) -> None:
        before, now = self._before.get(pid, {}), self._threads(pid)
        seconds = self._seconds.setdefault(pid, defaultdict(float))
        for tid, (ticks, node) in now.items():
            # A thread that began since the last look has run all of its time since.
            ran, was_on = before.get(tid, (0 if before else ticks, node))
            for at in (was_on, node):
                seconds[at] += (ticks - ran) / _TICKS / 2
        self._before[pid] = now

    def take(self, pid: int) -> Mapping[int, float]:
        """Seconds by node since the last call; empty where nothing ran."""
        return {node: s for node, s in self._seconds.pop(pid, {}).items() if s}

    def forget(self, pid: int) -> None:
        self._before.pop(pid, None)
        self._seconds.pop(pid, None)

    def _threads(self, pid: int) -> dict[int, tuple[int, int]]:
        """Ticks of CPU time, and the node of the CPU that it is or was last on; by tid."""
        found = {}
        for thread in entries(self._proc / str(pid) / "task", "[0-9]*"):
            fields = (value_of(text(thread / "stat")) or "").rpartition(") ")[2].split()
            if len(fields) > 36:  # from field 3 of proc_pid_stat(5) on
                node = self._node_of.get(int(fields[36]))
                if node is not None:
                    found[int(thread.name)] = int(fields[11]) + int(fields[12]), node
        return found
