"""What totals gained since they were last looked at."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tracer.ledger import counts
from tracer.ledger.histogram import BUCKETS
from tracer.ledger.profile import Profile
from tracer.ledger.totals import Totals
from tracer.record.outliers import recorded as recorded_outliers
from tracer.record.slow_steps import recorded
from tracer.record.window import Answer, RecordedStep, StepSums, Window

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V", int, float)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Totals at one moment. What is not copied is never changed in place."""

    steps: int
    profile: Profile
    seconds: NDArray[np.float64]
    helper_seconds: NDArray[np.float64]
    outside_seconds: NDArray[np.float64]
    queue_waits: Profile
    deschedules: NDArray[np.uint64]
    blame: Mapping[tuple[str, str, str], float]
    stalls: int
    events: Mapping[counts.Labels, float]
    lost: Mapping[str, int]
    outliers: int

    @classmethod
    def of(cls, totals: Totals, lost: Mapping[str, int]) -> _Sums:
        return cls(
            totals.steps,
            totals.profile,
            totals.seconds.copy(),
            totals.helper_seconds.copy(),
            totals.outside_seconds.copy(),
            totals.queue_waits,
            totals.deschedules,
            dict(totals.blame.seconds(totals.tenants.names)),
            totals.stalls.number,
            counts.by_labels(totals),
            dict(lost),
            totals.longest.seen,
        )


class Increments:
    """The windows of a recording, one after the other, from totals that only grow."""

    def __init__(self, totals: Totals, lost: Mapping[str, int], now_ns: int) -> None:
        """The first window begins at ``now_ns`` and has what comes from now on."""
        self._totals, self._started_ns = totals, now_ns
        self._before = _Sums.of(totals, lost)
        self._slow_before: set[tuple[int, ...]] = set()
        self._answers: dict[str, Answer] = {}

    def take(
        self,
        lost: Mapping[str, int],
        now_ns: int,
        unix_ns: int,
        answers: Mapping[str, Answer] | None = None,
    ) -> Window:
        """
        What came since the last call. Deschedules are those of the last ``add_deschedules``.

        :param lost: what all parts together could not count, by reason, since the start
        :param answers: of commands, as of now
        """
        now, before = _Sums.of(self._totals, lost), self._before
        window = Window(
            started_ns=self._started_ns,
            ended_ns=now_ns,
            unix_ns=unix_ns,
            steps=now.steps - before.steps,
            by_step=self._by_step(now, before),
            queue_waits=self._by_tenant(_gained(now.queue_waits, before.queue_waits)),
            deschedules=self._deschedules(now, before),
            outside=self._outside(now, before),
            blame=_difference(now.blame, before.blame),
            events=_difference(now.events, before.events),
            slowest=self._slowest(now_ns),
            outliers=recorded_outliers(
                *self._totals.longest.since(before.outliers), self._totals.names
            ),
            answers={c: a for c, a in (answers or {}).items() if self._answers.get(c) != a},
            stalls=self._totals.stalls.since(before.stalls),
            lost=_difference(now.lost, before.lost),
        )
        self._started_ns, self._before = now_ns, now
        self._answers |= window.answers
        return window

    def _by_step(self, now: _Sums, before: _Sums) -> dict[tuple[str, str], StepSums]:
        gained = _gained(now.profile, before.profile)
        return {
            self._totals.labels_of(row): StepSums(
                is_stage=bool(self._totals.is_stage[row]),
                profile=_of_row(gained, row),
                seconds=now.seconds[row] - before.seconds[row],
                helper_seconds=float(now.helper_seconds[row] - before.helper_seconds[row]),
            )
            for row in gained.rows()
        }

    def _by_tenant(self, profile: Profile) -> dict[str, Profile]:
        return {self._totals.tenants.names[row]: _of_row(profile, row) for row in profile.rows()}

    def _deschedules(self, now: _Sums, before: _Sums) -> dict[str, NDArray[np.int64]]:
        gained = now.deschedules.astype(np.int64)
        gained[: len(before.deschedules)] -= before.deschedules.astype(np.int64)
        return dict(zip(self._totals.descheduled, gained, strict=True))

    def _outside(self, now: _Sums, before: _Sums) -> dict[str, NDArray[np.float64]]:
        gained = now.outside_seconds - before.outside_seconds
        names = self._totals.tenants.names
        return {names[at]: gained[at] for at in np.flatnonzero(gained.any(axis=1))}

    def _slowest(self, now_ns: int) -> list[RecordedStep]:
        steps = self._totals.slowest.steps(now_ns)
        if steps is None:
            return []
        columns = steps.end_ns, steps.target, steps.slot, steps.number
        keys = list(zip(*(column.tolist() for column in columns), strict=True))
        new = [at for at, key in enumerate(keys) if key not in self._slow_before]
        # Slower and older ones expire: a step may be among the slowest, not, and again.
        oldest = now_ns - self._totals.window_seconds * 1_000_000_000
        self._slow_before = {key for key in self._slow_before if key[0] > oldest} | set(keys)
        return recorded(self._totals, steps.take(np.array(new, np.intp)))


def _gained(now: Profile, before: Profile) -> Profile:
    everything = Profile.total([now, Profile(before.cell, -before.count, -before.ns)])
    some = everything.count > 0
    return Profile(everything.cell[some], everything.count[some], everything.ns[some])


def _of_row(profile: Profile, row: int) -> Profile:
    """The cells of one row, as those of row 0."""
    first, last = np.searchsorted(profile.cell, [row * BUCKETS, (row + 1) * BUCKETS])
    cells = slice(first, last)
    return Profile(profile.cell[cells] - row * BUCKETS, profile.count[cells], profile.ns[cells])


def _difference(now: Mapping[_K, _V], before: Mapping[_K, _V]) -> dict[_K, _V]:
    gained = {key: value - before.get(key, 0) for key, value in now.items()}
    return {key: value for key, value in gained.items() if value > 0}
