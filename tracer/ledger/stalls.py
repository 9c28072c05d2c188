"""What the stalls of a machine add up to: by scope, the longest, and those of late one by one."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracer.catalog import SCOPES
from tracer.ledger.histogram import BUCKETS, bucket_of, coarsen
from tracer.model import Histogram, Stall

_LONGEST, _RECENT = 20, 10_000
_SECOND = 1_000_000_000
_AT = {scope: at for at, scope in enumerate(SCOPES)}


@dataclass(frozen=True, slots=True, kw_only=True)
class StallRow:
    """All stalls of a scope, in seconds."""

    scope: str
    count: int
    seconds: float
    longest: float


class StallTotals:
    def __init__(self, window_seconds: int, lost: Counter[str]) -> None:
        """``lost`` is counted into: ``stalls_not_kept``."""
        self.number = 0
        self.longest: list[Stall] = []
        """Longest first, some of all so far."""

        self._window_ns, self._lost = window_seconds * _SECOND, lost
        self._counts = np.zeros((len(SCOPES), BUCKETS), np.int64)
        self._seconds, self._longest = np.zeros(len(SCOPES)), np.zeros(len(SCOPES))
        self._recent: deque[Stall] = deque()

    def add(self, stalls: Sequence[Stall], now_ns: int) -> None:
        for stall in stalls:
            at, seconds = _AT[stall.scope], stall.lost_ns / 1e9
            self._counts[at, bucket_of(stall.lost_ns)] += 1
            self._seconds[at] += seconds
            self._longest[at] = max(self._longest[at], seconds)
        self.number += len(stalls)
        self.longest = sorted([*self.longest, *stalls], key=lambda s: -s.lost_ns)[:_LONGEST]
        self._keep(stalls, now_ns)

    def _keep(self, stalls: Iterable[Stall], now_ns: int) -> None:
        self._recent.extend(stalls)
        while self._recent and self._recent[0].end_ns < now_ns - self._window_ns:
            self._recent.popleft()
        while len(self._recent) > _RECENT:
            self._recent.popleft()
            self._lost["stalls_not_kept"] += 1

    def since(self, number: int) -> tuple[Stall, ...]:
        """Those after the first ``number``, as far as they are kept: of the window."""
        new = self.number - number
        return tuple(self._recent)[-new:] if new else ()

    def rows(self) -> tuple[StallRow, ...]:
        """Of the scopes that there were, most time first."""
        counts = self._counts.sum(axis=1)
        rows = [
            StallRow(
                scope=scope,
                count=int(counts[at]),
                seconds=float(self._seconds[at]),
                longest=float(self._longest[at]),
            )
            for scope, at in _AT.items()
            if counts[at]
        ]
        return tuple(sorted(rows, key=lambda row: -row.seconds))

    def histograms(self, edges: NDArray[np.float64]) -> Mapping[Sequence[str], Histogram]:
        """By scope, those without any too."""
        counts = coarsen(self._counts, edges)
        return {(scope,): Histogram(counts[at], self._seconds[at]) for scope, at in _AT.items()}
