"""What one recording observed, window by window, in the form that is compared."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tracer.catalog import CAUSES
from tracer.judge.migration.distribution import Distribution
from tracer.ledger.histogram import BUCKETS
from tracer.ledger.profile import Profile
from tracer.ledger.totals import unseen
from tracer.record.meta import Meta
from tracer.record.window import WINDOW_SECONDS, Window

Pair = tuple[str, str]
"""Tenant and step kind."""

_K = TypeVar("_K")
_Pieces: TypeAlias = dict[_K, list[tuple[int, Profile]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """w windows, c causes in the order of the catalog."""

    meta: Meta
    seconds: NDArray[np.float64]
    """(w,) how long each window was."""

    steps: NDArray[np.float64]
    """(w,) steps without stages, of all tenants."""

    elapsed: Mapping[Pair, Distribution]
    """Wall times, stages included."""

    stages: Set[Pair]
    deschedules: Mapping[str, Distribution]
    """Of all causes, by tenant."""

    queue_waits: Mapping[str, Distribution]
    """By tenant."""

    causes: NDArray[np.float64]
    """(w, c) seconds of steps without stages."""

    lost: Mapping[str, int]
    window_seconds: int = WINDOW_SECONDS
    """How long a window is meant to be."""

    missing: int = 0
    """Windows of which nothing is known."""

    misplaced_segments: int | None = None
    """Shared segments with memory on another node than where it should be; None: not told."""

    @property
    def cannot_tell(self) -> Mapping[str, str]:
        """Causes that the machine could not tell, each with the reason."""
        return unseen(self.meta.cannot_tell, self.causes)

    @classmethod
    def of(cls, windows: Iterable[Window], meta: Meta) -> Sample:
        seconds, steps, causes, lost = [], [], [], Counter[str]()
        stages: set[Pair] = set()
        elapsed: _Pieces[Pair] = defaultdict(list)
        deschedules: _Pieces[str] = defaultdict(list)
        queue_waits: _Pieces[str] = defaultdict(list)
        for at, window in enumerate(windows):
            seconds.append(window.seconds)
            steps.append(window.steps)
            lost.update(window.lost)
            stages |= {pair for pair, sums in window.by_step.items() if sums.is_stage}
            whole = [s.seconds for pair, s in window.by_step.items() if pair not in stages]
            causes.append(np.sum([np.zeros(len(CAUSES)), *whole], axis=0))
            for pair, sums in window.by_step.items():
                elapsed[pair].append((at, _durations(sums.profile)))
            for tenant, histograms in window.deschedules.items():
                deschedules[tenant].append((at, _of_all_causes(histograms)))
            for tenant, profile in window.queue_waits.items():
                queue_waits[tenant].append((at, profile))
        return cls(
            meta=meta,
            seconds=np.array(seconds, float),
            steps=np.array(steps, float),
            elapsed=_distributions(len(seconds), elapsed),
            stages=stages,
            deschedules=_distributions(len(seconds), deschedules),
            queue_waits=_distributions(len(seconds), queue_waits),
            causes=np.array(causes).reshape(-1, len(CAUSES)),
            lost=lost,
        )

    def repeated(self, times: int, subject: Pair) -> Sample:
        """Of one subject: what it would be, had it gone on like this for so much longer."""
        tenant = subject[0]
        return replace(
            self,
            seconds=np.tile(self.seconds, times),
            steps=np.tile(self.steps, times),
            elapsed=_repeated(self.elapsed, subject, times),
            deschedules=_repeated(self.deschedules, tenant, times),
            queue_waits=_repeated(self.queue_waits, tenant, times),
            causes=np.tile(self.causes, (times, 1)),
        )


def _repeated(every: Mapping[_K, Distribution], key: _K, times: int) -> Mapping[_K, Distribution]:
    return {key: every[key].repeated(times)} if key in every else {}


def _durations(profile: Profile) -> Profile:
    """With the sum of the ledgers alone: thousands of windows are in memory at once."""
    return Profile(profile.cell, profile.count, profile.ns.sum(axis=1)[:, None])


def _of_all_causes(histograms: NDArray[np.int64]) -> Profile:
    counts = histograms[:, :BUCKETS].sum(axis=0)
    bucket = np.flatnonzero(counts)
    return Profile(bucket, counts[bucket], np.zeros((len(bucket), 0), np.int64))


def _distributions(windows: int, pieces: _Pieces[_K]) -> dict[_K, Distribution]:
    """Of those with any observation."""
    every = {key: Distribution.of(windows, profiles) for key, profiles in pieces.items()}
    return {key: distribution for key, distribution in every.items() if distribution.observations}
