"""
Which node the kernel took pages from, for whom, and how that drifts.

The counters (Documentation/admin-guide/numastat.rst) are of allocations of base pages, by the node
that served: ``local_node`` for a CPU of its own, ``other_node`` for a CPU of another. A transparent
huge page counts once (``zone_statistics`` of mm/page_alloc.c), pages of hugetlbfs do not, and no
access to memory does. ``numa_hit`` and ``numa_foreign`` are on the node that was wanted: it served,
or another did.
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
    hit: int
    foreign: int

    def __sub__(self, before: Counts) -> Counts:
        return Counts(
            self.local - before.local,
            self.other - before.other,
            self.hit - before.hit,
            self.foreign - before.foreign,
        )

    @property
    def remote(self) -> float | None:
        """Share that went to CPUs of other nodes; None for too few to tell."""
        return _share(self.other, self.local)

    @property
    def missed(self) -> float | None:
        """Share of what was wanted from it that came from another node."""
        return _share(self.foreign, self.hit)


_COUNTERS = "local_node", "other_node", "numa_hit", "numa_foreign"
"""As the kernel calls the fields of Counts."""

ByNode = Mapping[int, Counts]


@dataclass(frozen=True, slots=True)
class Trend:
    """A share in the last window, against what is usual."""

    now: Fact[float]
    usual: Fact[float]
    """In the windows before; since boot while there was none."""

    @property
    def change(self) -> Fact[float]:
        for fact in (self.now, self.usual):
            if isinstance(fact, Unknown):
                return fact
        assert isinstance(self.now, Known) and isinstance(self.usual, Known)
        return Known(self.now.value - self.usual.value, self.usual.source)


@dataclass(frozen=True, slots=True)
class Drift:
    """Of one node, in the last window."""

    window: Counts
    remote: Trend
    missed: Trend


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
        self._usual: dict[tuple[int, str], deque[float]] = {}

    def add(self, counts: ByNode) -> dict[int, Drift]:
        """The counters at the end of a window, and so at the beginning of the next."""
        before, self._before = self._before, counts
        return {
            node: self._drift(node, now - before[node], before[node])
            for node, now in counts.items()
            if node in before
        }

    def _drift(self, node: int, window: Counts, since_boot: Counts) -> Drift:
        remote = self._trend(node, "remote", window.remote, since_boot.remote)
        missed = self._trend(node, "missed", window.missed, since_boot.missed)
        return Drift(window, remote, missed)

    def _trend(self, node: int, share: str, now: float | None, since_boot: float | None) -> Trend:
        windows = self._usual.setdefault((node, share), deque(maxlen=REFERENCE))
        usual = median(windows) if windows else since_boot
        source = f"median of {len(windows)} windows before" if windows else "since boot"
        if now is not None:
            windows.append(now)
        return Trend(_told(now, "the last window"), _told(usual, source))


def _share(part: int, rest: int) -> float | None:
    whole = part + rest
    return part / whole if whole >= FEW else None


def _told(share: float | None, source: str) -> Fact[float]:
    return Unknown(f"of fewer than {FEW:,} pages") if share is None else Known(share, source)


def _parse(content: str) -> Counts:
    fields = dict(line.split() for line in content.splitlines())
    try:
        return Counts(*(int(fields[name]) for name in _COUNTERS))
    except KeyError as e:
        raise ValueError(content) from e
