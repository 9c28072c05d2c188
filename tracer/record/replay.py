"""Recorded windows back into totals, so that whatever reads an agent reads a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tracer.catalog import CAUSES, DESCHEDULES
from tracer.ledger import counts
from tracer.ledger.histogram import BUCKETS
from tracer.ledger.profile import Profile
from tracer.ledger.totals import Totals
from tracer.model import Names, Records, Stall, Steps
from tracer.record.meta import MachineKind, Meta
from tracer.record.outliers import restored as restored_outliers
from tracer.record.slow_steps import RunnerNames, restored
from tracer.record.window import RecordedStep, Window

Events = tuple[Steps, Records, NDArray[np.int32], Sequence[Stall]]
"""Slow steps; ``struct outlier`` (n,), and whose they were (n,): indices into names of tenants;
stalls."""


def replay(
    windows: Iterable[Window], meta: Meta, window_seconds: int
) -> tuple[Totals, Counter[str], int]:
    """
    The totals that the windows add up to, what was lost, and when the last one ended.

    Figures of the last ``window_seconds`` are to the nearest window.
    """
    replayed = _Replayed(meta, window_seconds)
    for window in windows:
        replayed.add(window)
    return replayed.totals, replayed.lost, replayed.ended_ns


def find(windows: Iterable[Window], meta: Meta, number: int) -> tuple[Totals, Steps]:
    """The slow steps with this number, and their stages; and the totals of all windows."""
    replayed, found = _Replayed(meta, meta.window_seconds), []
    for window in windows:
        replayed.add(window)
        found += [step for step in window.slowest if number in (step.number, step.parent)]
    return replayed.totals, replayed.restored(found)


def events(windows: Iterable[Window], meta: Meta) -> tuple[Totals, Iterator[Events]]:
    """Totals that grow as the windows are gone through, and what is recorded of single events."""
    replayed = _Replayed(meta, meta.window_seconds)

    def of_each() -> Iterator[Events]:
        for window in windows:
            replayed.add(window)
            steps = replayed.restored(window.slowest)
            outliers, tenants = restored_outliers(window.outliers, replayed.totals.names)
            yield steps, outliers, tenants, window.stalls

    return replayed.totals, of_each()


class _Replayed:
    def __init__(self, meta: Meta, window_seconds: int) -> None:
        self.lost: Counter[str] = Counter()
        self.ended_ns = meta.started_ns
        self._runners, self._names = RunnerNames(), Names()
        self._counted: set[int] = set()
        """Rows that have steps."""

        self._deschedules: dict[str, NDArray[np.uint64]] = {}
        self.totals = Totals(
            self._names,
            self._runners,
            meta.started_ns,
            cannot_tell=meta.cannot_tell,
            window_seconds=window_seconds,
            max_tenants=meta.max_tenants,
            bare_metal=meta.machine.kind is MachineKind.BARE_METAL,
            unix_offset_ns=meta.started_unix_ns - meta.started_ns,
        )

    def add(self, window: Window) -> None:
        self.lost.update(window.lost)
        if self.ended_ns == self.totals.started_ns:  # windows before may have been dropped
            self.totals.started_ns = window.started_ns
        self.ended_ns = window.ended_ns
        self.totals.steps += window.steps
        self._add_steps(window)
        self._add_deschedules(window)
        self._add_waits(window)
        self._add_slowest(window)
        self.totals.longest.add(*restored_outliers(window.outliers, self._names))
        self.totals.stalls.add(window.stalls, window.ended_ns)

    def _add_steps(self, window: Window) -> None:
        totals, profiles = self.totals, [Profile.empty(len(CAUSES))]
        for labels, sums in window.by_step.items():
            row = totals.row(*labels)
            totals.seconds[row] += sums.seconds
            totals.helper_seconds[row] += sums.helper_seconds
            totals.is_stage[row] |= sums.is_stage
            profiles.append(_at_row(sums.profile, row))
            self._counted.add(row)
        totals.add_profile(Profile.total(profiles), _within(window))

    def _add_slowest(self, window: Window) -> None:
        self.totals.slowest.add(self.restored(window.slowest), window.ended_ns)

    def restored(self, recorded: Sequence[RecordedStep]) -> Steps:
        """But for those whose like were dropped: their window had been the only one with any."""
        steps = restored(recorded, self._names, self._runners.add)
        rows = self.totals.largest_rows(steps)
        counted = [at for at, row in enumerate(rows) if row in self._counted]
        return steps.take(np.array(counted, np.intp))

    def _add_deschedules(self, window: Window) -> None:
        nothing = np.zeros((len(DESCHEDULES), BUCKETS + 1), np.uint64)
        for tenant, histograms in window.deschedules.items():
            before = self._deschedules.get(tenant, nothing)
            self._deschedules[tenant] = before + histograms.astype(np.uint64)
        if self._deschedules:
            table = np.stack(list(self._deschedules.values()))
            self.totals.add_deschedules(tuple(self._deschedules), table, _within(window))

    def _add_waits(self, window: Window) -> None:
        totals = self.totals
        for tenant, profile in window.queue_waits.items():
            waits = _at_row(profile, totals.tenants.number(tenant))
            totals.queue_waits = Profile.total([totals.queue_waits, waits])
        for tenant, seconds in window.outside.items():
            totals.outside_seconds[totals.tenants.number(tenant)] += seconds
        for (victim, aggressor, cause), s in window.blame.items():
            totals.blame.add_seconds(totals.tenants.number(victim), aggressor, cause, s)
        for labels, count in window.events.items():
            counts.add(totals, labels, count)


def _at_row(profile: Profile, row: int) -> Profile:
    return Profile(profile.cell + row * BUCKETS, profile.count, profile.ns)


def _within(window: Window) -> int:
    """A time at which what the window has was added; at its end the next one begins."""
    return window.ended_ns - 1
