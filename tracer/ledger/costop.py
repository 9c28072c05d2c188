"""
Stalls of single CPUs into stalls of the machine: which CPUs stood still together.

A hypervisor that runs something else takes one virtual CPU. One that waits until it can run several
at once (co-scheduling), or a machine that is stopped for a snapshot or a migration, takes several
at the same moment, and gives them back at the same moment. So stalls that overlap and end together
are one, and how many CPUs it had tells what it was. When they begin is known less well: a CPU shows
that it stands still only when a timer of it is due.

A CPU only tells of itself when a timer of it was due meanwhile. One that slept tells nothing, and
is counted neither among those that stood still nor among those that ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tracer.kernel.btf import wire
from tracer.ledger.timeline import is_torn
from tracer.model import Records, Stall, StalledThread, join_records

_SECOND = 1_000_000_000
_HOLD_NS = _SECOND  # within which all CPUs of a stall show that they are back, but for sleepers
_TOGETHER = 0.5  # of the shorter of two: they are one if they overlap so much, and end so close
_AT_ONCE_NS = 1_000_000  # CPUs that come back together do so within this, or as it is seen


class CoStops:
    """Holds stalls of CPUs until nothing more of their time can come."""

    def __init__(self, cpus: int, started_ns: int) -> None:
        """``cpus`` is how many the machine has."""
        self._cpus, self._started_ns = cpus, started_ns
        self._seen = np.zeros((wire().enum("limits")["MAX_CPUS"], 64), np.int64)
        """Stalls so far by CPU and octave of their length in ns."""

        self._held: Records = np.zeros(0, wire().dtype("stall"))
        self._tenants: list[str] = []

    def add(
        self, stalls: Records, tenants: Sequence[str], now_ns: int, last: bool = False
    ) -> list[Stall]:
        """
        Take what the CPUs told since the last call; give the stalls that are complete, by begin.

        :param stalls: (n,) ``struct stall``
        :param tenants: n names: whom the thread works for that was on the CPU, if it is traced
        :param last: nothing more will come
        """
        if not len(stalls) and not len(self._held):
            return []
        np.add.at(self._seen, (stalls["cpu"], _octave(stalls["end_ns"] - stalls["due_ns"])), 1)
        held = self._held = join_records([self._held, stalls])
        self._tenants = [*self._tenants, *tenants]
        groups = together(held)
        until_ns = now_ns if last else now_ns - _HOLD_NS
        complete = [g for g in groups if held["end_ns"][g].max() <= until_ns]
        closed = [self._stall(held[g], [self._tenants[i] for i in g], now_ns) for g in complete]
        rest = sorted(set(range(len(held))).difference(*complete))
        self._held, self._tenants = held[rest], [self._tenants[i] for i in rest]
        return closed

    def _stall(self, rows: Records, tenants: Sequence[str], now_ns: int) -> Stall:
        begin_ns, uncertain_ns = _begin(rows)
        end_ns = int(rows["end_ns"].min())
        cpus = sorted(set(rows["cpu"].tolist()))
        running = sorted(_running(rows) - set(cpus))
        steps = np.where(is_torn(rows), 0, rows["step"])
        spread_ns = int(rows["end_ns"].max()) - end_ns
        as_long = self._seen[:, _octave((rows["end_ns"] - rows["due_ns"]).min()) :].sum(axis=1)
        return Stall(
            begin_ns=begin_ns,
            uncertain_ns=uncertain_ns,
            end_ns=end_ns,
            stolen_ns=min(int(rows["stolen_ns"].min()), end_ns - begin_ns),
            scope=scope_of(len(cpus), len(running), self._cpus),
            cpus=tuple(cpus),
            running=tuple(running),
            chance=chance(
                as_long / max(now_ns - self._started_ns, 1), cpus, max(spread_ns, _AT_ONCE_NS)
            ),
            hit=tuple(
                StalledThread(
                    tenant=tenant,
                    pid=int(row["tgid"]),
                    tid=int(row["tid"]),
                    step=int(step),
                    cpu=int(row["cpu"]),
                    lost_ns=int(row["lost_ns"]),
                )
                for row, step, tenant in zip(rows, steps, tenants, strict=True)
                if row["process"]
            ),
        )


@dataclass(slots=True)
class _Group:
    """Stalls of different CPUs, and the time that all of them had in common."""

    from_ns: int
    until_ns: int
    rows: list[int] = field(default_factory=list)
    cpus: set[int] = field(default_factory=set)

    def takes(self, cpu: int, due_ns: int, end_ns: int) -> bool:
        common = min(self.until_ns, end_ns) - max(self.from_ns, due_ns)
        shorter = min(self.until_ns - self.from_ns, end_ns - due_ns)
        apart = abs(end_ns - self.until_ns)
        return cpu not in self.cpus and apart <= _TOGETHER * shorter <= common

    def add(self, row: int, cpu: int, due_ns: int, end_ns: int) -> None:
        self.rows.append(row)
        self.cpus.add(cpu)
        self.from_ns, self.until_ns = max(self.from_ns, due_ns), min(self.until_ns, end_ns)


def together(stalls: Records) -> list[list[int]]:
    """The rows of ``struct stall`` (n,) that were one stall of the machine each, by begin."""
    groups: list[_Group] = []
    open_groups: list[_Group] = []
    for row in np.argsort(stalls["due_ns"], kind="stable").tolist():
        cpu, due_ns, end_ns = (int(stalls[name][row]) for name in ("cpu", "due_ns", "end_ns"))
        open_groups = [group for group in open_groups if group.until_ns > due_ns]
        group = next((g for g in open_groups if g.takes(cpu, due_ns, end_ns)), None)
        if group is None:
            group = _Group(due_ns, end_ns)
            groups.append(group)
            open_groups.append(group)
        group.add(row, cpu, due_ns, end_ns)
    return [group.rows for group in groups]


def scope_of(stalled: int, running: int, cpus: int) -> str:
    """
    One of ``catalog.SCOPES``.

    :param stalled: CPUs that stood still
    :param running: others that are known to have run meanwhile
    :param cpus: all that there are
    """
    if running == 0:
        return "all" if stalled > 1 or cpus == 1 else "unknown"
    if stalled == 1:
        return "one"
    return "all_but_one" if running == 1 else "some"


def chance(rates: NDArray[np.float64], cpus: Sequence[int], window_ns: int) -> float:
    """
    How likely the CPUs besides the first would have come back within a window around it by chance.

    :param rates: stalls per ns by CPU, of those that are as long; each CPU by itself, they would
        come at any time (Poisson)
    :returns: 0 to 1; 1 for a single CPU, which is no coincidence
    """
    others = 1 - np.exp(-np.delete(rates, cpus[0]) * 2 * window_ns)
    number = np.ones(1)  # of them that do: the probabilities of 0, 1, 2, ...
    for each in others[others > 0]:
        number = np.convolve(number, [1 - each, each])
    return float(number[len(cpus) - 1 :].sum())


def _octave(ns: NDArray[np.uint64]) -> NDArray[np.int64]:
    return np.log2(ns).astype(np.int64)


def _begin(rows: Records) -> tuple[int, int | None]:
    """When all of them stood still, and by how much that may be wrong, as for ``Stall``."""
    due_ns, end_ns = int(rows["due_ns"].min()), int(rows["end_ns"].min())
    alive = rows["alive_ns"][rows["alive_ns"] > 0]
    if not len(alive):
        return due_ns, None
    alive_ns = int(alive.max())
    gap_ns = abs(due_ns - alive_ns)
    # As on the kernel side: not made more than half longer by what was not seen.
    unseen_ns = min(due_ns - alive_ns, end_ns - due_ns) // 2
    return due_ns - unseen_ns, gap_ns // 2


def _running(rows: Records) -> set[int]:
    """As the first CPU that was back saw it: to later ones those that came before them ran."""
    words = rows["running"][rows["end_ns"].argmin()]
    return set(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist())
