"""
The values that travel between the agent's parts, as plain data.

Nothing here knows the kernel side or an exporter, so every part is tested with literals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tracer.catalog import Metric

_T = TypeVar("_T", bound=np.generic)

Records = NDArray[np.void]
"""A structured array whose dtype was read from the BPF object's debug information."""


def take_rows(array: NDArray[_T], rows: Any) -> NDArray[_T]:
    """``array[rows]`` for a mask, a slice or positions; of records 17 times faster, because
    indexing copies them field by field and ``take`` as bytes."""
    taken: NDArray[_T] = array.take(np.arange(len(array))[rows], axis=0)
    return taken


def join_records(batches: Sequence[Records]) -> Records:
    """``np.concatenate`` of one batch or more of the same dtype, as bytes too."""
    raw = [batch.view(f"V{batch.itemsize}") for batch in batches]
    joined: Records = np.concatenate(raw).view(batches[0].dtype)
    return joined


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing the tracer can tell here, or the reason why it cannot."""

    name: str
    source: str
    """The alternative in use, such as ``rq`` for steal; ``none`` when there is none."""

    reason: str = ""
    """Why it is not available, or why not by the first choice. Empty when all is well."""

    @property
    def available(self) -> bool:
        return self.source != "none"


@dataclass(frozen=True, slots=True)
class Target:
    """A process that is traced."""

    index: int
    """Its number in the kernel's process table, from 1."""

    pid: int
    started_ns: int
    """Start time since boot (clock ticks scaled to ns): with the pid, names it for ever."""

    name: str
    tenant: str
    """Whom its threads outside of marks work for."""


@dataclass(frozen=True, slots=True)
class Aggressor:
    """Who ran while a thread wanted the CPU."""

    name: str
    """A tenant's name for a traced process, else a container's, else the thread's comm."""

    pid: int
    tid: int
    comm: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StalledThread:
    """A traced thread that was on a CPU when it stood still."""

    tenant: str
    pid: int
    tid: int
    step: int
    """Its number; 0 for work in no step, or in one that is not known."""

    cpu: int
    lost_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """CPUs stood still, one or several together. Times are CLOCK_MONOTONIC."""

    begin_ns: int
    """In the middle of what is possible."""

    uncertain_ns: int | None
    """By how much the begin may be wrong; None where the CPUs may have slept before."""

    end_ns: int
    stolen_ns: int
    """Of it, what the steal clock has at least."""

    scope: str
    """One of ``catalog.SCOPES``."""

    cpus: tuple[int, ...]
    running: tuple[int, ...]
    """Other CPUs that are known to have run meanwhile."""

    chance: float
    """How likely as many CPUs would have stood still together by chance, each on its own."""

    hit: tuple[StalledThread, ...]

    @property
    def lost_ns(self) -> int:
        return self.end_ns - self.begin_ns - self.stolen_ns


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts over buckets with fixed edges, as Prometheus' classic histograms have them."""

    counts: NDArray[np.int64]
    """(n + 1,) not cumulative; the last is what exceeded every edge."""

    sum: float
    """Of all observations, in the metric's unit."""


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with its rows, ready for an exporter."""

    metric: Metric
    rows: Mapping[Sequence[str], float | Histogram]
    """Label values in the order of ``metric.labels`` -> value."""

    edges: NDArray[np.float64] | None = None
    """(n,) upper bounds of the histogram's buckets, in the metric's unit."""

    exemplars: Mapping[Sequence[str], Sequence[Exemplar]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exemplar:
    """One observation worth looking at, with what is needed to find it again."""

    value: float
    labels: Mapping[str, str]
    unix_seconds: float


@dataclass(frozen=True, slots=True)
class Steps:
    """
    A batch of finished steps with their ledgers. Row i of every array is the same step.

    n is the number of steps, c the number of causes (order of ``catalog.CAUSES``), s the most
    shares a step can have.
    """

    target: NDArray[np.uint32]
    """(n,) index of the target process."""

    tid: NDArray[np.uint32]
    """(n,) thread in the root pid namespace; 0 when no kernel event told it."""

    slot: NDArray[np.uint32]
    number: NDArray[np.uint64]
    """(n,) step number, unique with target and slot."""

    parent: NDArray[np.uint64]
    """(n,) the step that a stage belongs to; 0 for a step."""

    kind: NDArray[np.int32]
    """(n,) index into ``Names.kinds``."""

    tenant: NDArray[np.int32]
    """(n, s) index into ``Names.tenants``; -1 beyond the step's shares."""

    share: NDArray[np.float64]
    """(n, s) each tenant's share; every row sums to 1."""

    begin_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]

    ns: NDArray[np.int64]
    """(n, c) the ledger. ``ns.sum(axis=1) == end_ns - begin_ns`` by way of ``unexplained``,
    which is negative where kernel and marks overlap. A step includes its stages."""

    switches: NDArray[np.uint32]
    involuntary: NDArray[np.uint32]
    migrations: NDArray[np.uint32]
    helper_wait_ns: NDArray[np.int64]
    helper_worst_ns: NDArray[np.int64]

    events: NDArray[np.int64]
    """(n, e) counts, in the order of ``catalog.EVENTS``."""

    worst: Records
    """(n,) ``struct wait``: the longest deschedule; ns = 0 where there was none."""

    aggressors: Records
    """(n, k) ``struct aggressor``, largest first; ns = 0 beyond those known."""

    blame_rest_ns: NDArray[np.int64]
    """(n,) deschedules whose aggressor is not among ``aggressors``."""

    def __len__(self) -> int:
        return len(self.number)

    @property
    def elapsed_ns(self) -> NDArray[np.int64]:
        return self.end_ns - self.begin_ns

    def take(self, rows: Any) -> Steps:
        """The steps that ``rows`` selects: a mask, a slice or positions."""
        columns: list[Any] = [take_rows(getattr(self, name), rows) for name in self.__slots__]
        return Steps(*columns)

    @classmethod
    def concatenate(cls, batches: Sequence[Steps]) -> Steps:
        """The steps of one batch or more, in the order given."""
        return cls(*(np.concatenate([getattr(b, n) for b in batches]) for n in cls.__slots__))


Track = tuple[str, ...]
"""A row of a timeline, by the names of the groups that it is in and its own."""


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took a while, in a timeline. Times are CLOCK_MONOTONIC."""

    name: str
    begin_ns: int
    end_ns: int
    details: Mapping[str, str | int | float] = field(default_factory=dict)
    """Whole numbers are not negative."""


@dataclass(slots=True)
class Names:
    """Step kinds and tenants seen so far, numbered in order of appearance."""

    kinds: list[str] = field(default_factory=list)
    tenants: list[str] = field(default_factory=list)
