"""
Which node the kernel took pages from, for whom, and how that drifts.

The counters (Documentation/admin-guide/numastat.rst) are of allocations of base pages, by the node
that served: ``local_node`` for a CPU of its own, ``other_node`` for a CPU of another. A transparent
huge page counts once (``zone_statistics`` of mm/page_alloc.c), pages of hugetlbfs do not, and no
access to memory does. ``numa_foreign`` is on the node that was
wanted and did not serve.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tracer.host.facts import Fact, Known, Unknown, convert, entries, number, text

REFERENCE = 60
"""Windows before the last one; what is usual is the median of their shares: of an hour, so that a
change that lasts shows for half of it."""

FEW = 1000
"""Pages, 4 MB: of fewer allocations a share means nothing."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Pages of one node since boot."""

    local: int
    other: int
    foreign: int

    def __sub__(self, before: Counts) -> Counts:
        return Counts(
            self.local - before.local, self.other - before.other, self.foreign - before.foreign
        )

    @property
    def remote(self) -> float | None:
        """Share that went to CPUs of other nodes; None for too few to tell."""
        served = self.local + self.other
        return self.other / served if served >= FEW else None


ByNode = Mapping[int, Counts]


@dataclass(frozen=True, slots=True)
class Drift:
    """Of one node, in the last window."""

    window: Counts
    remote: Fact[float]
    """Share of its allocations that went to CPUs of other nodes."""

    usual: Fact[float]
    """The same in the windows before; since boot while there was none."""

    @property
    def change(self) -> Fact[float]:
        for fact in (self.remote, self.usual):
            if isinstance(fact, Unknown):
                return fact
        assert isinstance(self.remote, Known) and isinstance(self.usual, Known)
        return Known(self.remote.value - self.usual.value, self.usual.source)


def numastat(proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> Fact[ByNode]:
    """By node. Unknown where the kernel does not count."""
    counts = number(proc / "sys/vm/numa_stat")
    if isinstance(counts, Known) and counts.value == 0:
        return Unknown(f"{counts.source} is 0: the kernel does not count allocations by node")
    found: dict[int, Counts] = {}
    for node in entries(sys / "devices/system/node", "node[0-9]*"):
        told = convert(text(node / "numastat"), _parse)
        if isinstance(told, Unknown):
            return told
        found[int(node.name.removeprefix("node"))] = told.value
    source = f"{sys}/devices/system/node/node*/numastat"
    return Known(found, source) if found else Unknown(f"{source} do not exist")


class Drifts:
    """Windows one after the other, each compared with those before."""

    def __init__(self) -> None:
        self._before: ByNode = {}
        self._usual: dict[int, deque[float]] = {}

    def add(self, counts: ByNode) -> dict[int, Drift]:
        """The counters at the end of a window, and so at the beginning of the next."""
        before, self._before = self._before, counts
        return {
            node: self._drift(node, now - before[node], before[node])
            for node, now in counts.items()
            if node in before
        }

    def _drift(self, node: int, window: Counts, since_boot: Counts) -> Drift:
        few = Unknown(f"fewer than {FEW:,} pages were allocated from it")
        windows = self._usual.setdefault(node, deque(maxlen=REFERENCE))
        usual = median(windows) if windows else since_boot.remote
        source = f"median of {len(windows)} windows before" if windows else "since boot"
        if (remote := window.remote) is not None:
            windows.append(remote)
        return Drift(
            window,
            few if remote is None else Known(remote, "the last window"),
            few if usual is None else Known(usual, source),
        )


def _parse(content: str) -> Counts:
    fields = dict(line.split() for line in content.splitlines())
    try:
        return Counts(*(int(fields[k]) for k in ("local_node", "other_node", "numa_foreign")))
    except KeyError as e:
        raise ValueError(content) from e
