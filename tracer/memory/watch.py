"""
Keeps an eye on where memory is and where threads run, a little at a time.

Nothing here is urgent, and all of it costs: the memory of one process is looked at in a tick, that
of each at most once in a window, and every kind of look takes at most a thousandth of a CPU.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tracer.host.facts import Fact, Known, Unknown
from tracer.host.topology import Node
from tracer.memory.devices import Accelerator, accelerators, opened
from tracer.memory.numastat import ByNode, Drift, Drifts, numastat
from tracer.memory.pages import Ask
from tracer.memory.pinning import Placed, pinning
from tracer.memory.process import ProcessMemory, memory_of
from tracer.memory.running import RunTimes
from tracer.memory.segments import Segment, segments
from tracer.memory.syscalls import nodes_of_pages
from tracer.model import Target

PACE = 1000
"""Times what a look took pass until the next of the same kind."""

_RUN_LOOKS = 6  # at all threads, in each window
_NOT_YET = Unknown("it was not looked at yet")


@dataclass(frozen=True, slots=True)
class TargetMemory:
    target: Target
    runs: Mapping[int, float]
    """CPU seconds by node in the last window."""

    memory: Fact[ProcessMemory]
    pinning: Fact[tuple[tuple[Placed, int], ...]]
    accelerators: Fact[frozenset[str]]
    """Addresses of those that it has open."""

    cost_seconds: float
    """That the last look at its memory took."""


@dataclass(frozen=True, slots=True)
class MemoryState:
    """As of the end of a window."""

    seconds: float
    """Of the window."""

    numastat: Fact[ByNode]
    drift: Mapping[int, Drift]
    """By node; empty when the counters are not known."""

    targets: tuple[TargetMemory, ...]
    segments: tuple[Segment, ...]
    """The largest first."""

    accelerators: Mapping[str, Accelerator]
    """Of the machine, by address."""

    more_segments: int
    """Those beyond the number that is looked at."""


@dataclass(slots=True)
class _Seen:
    """What is known of one target between windows."""

    target: Target
    looked: float = -math.inf
    """When its memory was."""

    memory: Fact[ProcessMemory] = _NOT_YET
    pinning: Fact[tuple[tuple[Placed, int], ...]] = _NOT_YET
    accelerators: Fact[frozenset[str]] = _NOT_YET
    cost_seconds: float = 0.0


class Watch:
    """The first window begins now."""

    def __init__(
        self,
        nodes: Iterable[Node],
        window_seconds: float,
        most_segments: int,
        *,
        pace: int = PACE,
        ask: Ask = nodes_of_pages,
        proc: Path = Path("/proc"),
        sys: Path = Path("/sys"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._nodes = tuple(nodes)
        self._window, self._most_segments = window_seconds, most_segments
        self._pace = pace
        self._ask, self._proc, self._sys, self._clock = ask, proc, sys, clock
        self._random = np.random.default_rng()
        self._runs = RunTimes(self._nodes, proc)
        self._accelerators = accelerators(sys)
        self._drifts = Drifts()
        self._seen: dict[int, _Seen] = {}
        self._runs_due = self._memory_due = -math.inf
        self._opened = clock()
        self._ends = self._opened + window_seconds
        self.busy_seconds = 0.0
        """Spent on all of it."""

        if isinstance(counts := numastat(proc, sys), Known):
            self._drifts.add(counts.value)

    def tick(self, targets: Sequence[Target]) -> MemoryState | None:
        """Do what is due. Returns the state when a window ends."""
        began = time.perf_counter()
        state = self._tick(targets, self._clock())
        self.busy_seconds += time.perf_counter() - began
        return state

    def _tick(self, targets: Sequence[Target], now: float) -> MemoryState | None:
        self._follow(targets)
        if now >= self._runs_due:
            self._look_at_threads(now)
        longest_ago = min(self._seen.values(), key=lambda seen: seen.looked, default=None)
        if longest_ago and now >= max(self._memory_due, longest_ago.looked + self._window):
            self._look_at_memory(longest_ago, now)
        return self._close(now) if now >= self._ends else None

    def _follow(self, targets: Sequence[Target]) -> None:
        current = {target.pid: target for target in targets}
        for pid, seen in list(self._seen.items()):
            if current.get(pid) != seen.target:
                del self._seen[pid]
                self._runs.forget(pid)
        for pid, target in current.items():
            self._seen.setdefault(pid, _Seen(target))

    def _look_at_threads(self, now: float) -> None:
        began = time.perf_counter()
        for pid in self._seen:
            self._runs.look(pid)
        self._runs_due = now + max(self._window / _RUN_LOOKS, self._rest(began))

    def _look_at_memory(self, seen: _Seen, now: float) -> None:
        began = time.perf_counter()
        pid = seen.target.pid
        seen.memory = memory_of(pid, self._ask, self._random, self._proc)
        seen.pinning = pinning(pid, self._nodes, self._proc)
        seen.accelerators = opened(pid, self._proc, self._sys)
        seen.cost_seconds = time.perf_counter() - began
        seen.looked, self._memory_due = now, now + self._rest(began)

    def _close(self, now: float) -> MemoryState:
        began = time.perf_counter()
        self._look_at_threads(now)
        counts = numastat(self._proc, self._sys)
        found, more = segments(
            {
                pid: seen.memory.value
                for pid, seen in self._seen.items()
                if isinstance(seen.memory, Known)
            },
            self._ask,
            self._random,
            self._most_segments,
        )
        state = MemoryState(
            seconds=now - self._opened,
            numastat=counts,
            drift=self._drifts.add(counts.value) if isinstance(counts, Known) else {},
            targets=self._targets(),
            segments=tuple(found),
            accelerators=self._accelerators,
            more_segments=more,
        )
        self._opened = now
        self._ends = now + max(self._window, self._rest(began))
        return state

    def _targets(self) -> tuple[TargetMemory, ...]:
        return tuple(
            TargetMemory(
                seen.target,
                self._runs.take(pid),
                seen.memory,
                seen.pinning,
                seen.accelerators,
                seen.cost_seconds,
            )
            for pid, seen in self._seen.items()
        )

    def _rest(self, began: float) -> float:
        return self._pace * (time.perf_counter() - began)
