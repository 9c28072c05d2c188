"""
What all steps and deschedules add up to: since the start, and over a window of seconds.

Everything is bounded: tenants, step kinds of a tenant and aggressors beyond their number, in the
order in which they are first seen, are ``other``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tracer.catalog import CAUSES, DESCHEDULES, EVENTS
from tracer.ledger.blame import Blame, NameRunners
from tracer.ledger.books import CAUSE_AT
from tracer.ledger.grouping import add_rows
from tracer.ledger.histogram import BUCKETS
from tracer.ledger.labels import Labels
from tracer.ledger.longest import LongestWaits
from tracer.ledger.profile import Profile, Window
from tracer.ledger.slowest import Slowest
from tracer.ledger.stalls import StallTotals
from tracer.model import Names, Records, Steps, take_rows

MAX_KINDS = 64
"""Step kinds of one tenant."""

_MERGE_AT = 32  # batches: merging each at once would copy the whole profile every time


def unseen(cannot_tell: Mapping[str, str], seconds: NDArray[np.float64]) -> dict[str, str]:
    """
    Without the causes that have time in the (n, c) seconds: one that was seen can be told, though
    nobody knew at the start. A steal clock looks like none until something is stolen.
    """
    seen = np.flatnonzero(seconds.any(axis=0)).tolist()
    return {name: why for name, why in cannot_tell.items() if CAUSE_AT.get(name) not in seen}


class Totals:
    """Feed it with ``add_*``; ``families`` and ``summary`` of this package read it."""

    def __init__(
        self,
        names: Names,
        name_runners: NameRunners,
        started_ns: int,
        *,
        cannot_tell: Mapping[str, str],
        window_seconds: int = 60,
        max_tenants: int = 100,
        bare_metal: bool = False,
        unix_offset_ns: int = 0,
    ) -> None:
        """
        :param names: what the kinds and tenants of steps are numbers of; may grow
        :param cannot_tell: causes, and capabilities behind events, of which nobody knows that this
            machine has them, each with the reason
        :param bare_metal: whether it is known to have no hypervisor
        :param unix_offset_ns: what the wall clock shows more than CLOCK_MONOTONIC
        """
        self.names, self.started_ns, self._cannot_tell = names, started_ns, cannot_tell
        self.window_seconds = window_seconds
        self.bare_metal, self.unix_offset_ns = bare_metal, unix_offset_ns
        self.lost: Counter[str] = Counter()
        """By reason. Besides what others count: ``ledger_beyond_step``, steps whose pieces
        have more time than the step."""

        self.steps = 0
        """Steps, without stages."""

        self.tenants = Labels(max_tenants)
        self.kinds: dict[int, Labels] = defaultdict(lambda: Labels(MAX_KINDS))
        """Per tenant's number."""

        rows = (max_tenants + 1) * (MAX_KINDS + 1)
        self.seconds = np.zeros((rows, len(CAUSES)))
        """(rows, c) of a tenant's steps, each step split by the tenants' shares."""

        self.helper_seconds = np.zeros(rows)
        self.is_stage = np.zeros(rows, np.bool_)
        self.outside_seconds = np.zeros((max_tenants + 1, len(CAUSES)))
        """By tenant's number: what kernel events told of threads in no step."""

        self.events = np.zeros((rows, len(EVENTS)))
        """(rows, e) of a tenant's steps, each step split by the tenants' shares."""

        self.outside_events = np.zeros((max_tenants + 1, len(EVENTS)))

        self.blame = Blame(name_runners, max_tenants + 1)
        self.slowest = Slowest(window_seconds)
        self.longest = LongestWaits(window_seconds)
        self.stalls = StallTotals(window_seconds, self.lost)
        self.window = Window(window_seconds, columns=0)
        """Wall times of steps by row."""

        self.window_ledgers = Window(window_seconds, columns=len(CAUSES))
        """Their whole ledgers added up, by row alone."""

        self.queue_waits = Profile.empty(1)
        """By tenant's number."""

        self.descheduled: Sequence[str] = ()
        """The tenants of the rows of ``deschedules``."""

        self.deschedules = np.zeros((0, len(DESCHEDULES), BUCKETS + 1), np.uint64)
        """(tenants, DESCHEDULES, buckets and then the sum in ns) since load."""

        self.deschedule_window = Window(window_seconds, columns=0)
        """Of all causes, by row of ``deschedules``."""

        self._profiles = [Profile.empty(len(CAUSES))]

    @property
    def cannot_tell(self) -> Mapping[str, str]:
        """Causes, and capabilities behind events, that are not told, each with the reason."""
        return unseen(self._cannot_tell, self.seconds)

    @property
    def profile(self) -> Profile:
        """Steps and their whole ledgers by row. A step counts once for each tenant it served:
        each of them waited for all of it."""
        self._profiles = [Profile.total(self._profiles)]
        return self._profiles[0]

    def labels_of(self, row: int) -> tuple[str, str]:
        """Tenant and step kind."""
        tenant, kind = divmod(row, MAX_KINDS + 1)
        return self.tenants.names[tenant], self.kinds[tenant].names[kind]

    def row(self, tenant: str, kind: str) -> int:
        """Of these labels; of ``other`` where there are too many."""
        number = self.tenants.number(tenant)
        return number * (MAX_KINDS + 1) + self.kinds[number].number(kind)

    def largest_rows(self, steps: Steps) -> list[int]:
        """(n,) the row of each step under the tenant with the largest share."""
        rows = self._rows(steps)[np.arange(len(steps)), steps.share.argmax(axis=1)]
        return [int(row) for row in rows]

    def add_steps(self, steps: Steps, now_ns: int) -> None:
        if not len(steps):
            return
        self.steps += int((steps.parent == 0).sum())
        self.lost["ledger_beyond_step"] += int((steps.ns[:, CAUSE_AT["unexplained"]] < 0).sum())
        row_of_share = self._rows(steps)
        self._add_shares(steps, row_of_share)
        self._add_profile(steps, row_of_share, now_ns)
        self._add_blame(steps, row_of_share)
        self.slowest.add(steps, now_ns)

    def add_profile(self, profile: Profile, now_ns: int) -> None:
        """Steps and their whole ledgers by row, all at once."""
        self._profiles.append(profile)
        if len(self._profiles) > _MERGE_AT:
            self._profiles = [self.profile]
        wall_times = Profile(profile.cell, profile.count, profile.ns[:, :0])
        self.window.add(wall_times, now_ns)
        self.window_ledgers.add(profile.by_row(), now_ns)

    def add_outside(self, pieces: Records, tenant: NDArray[np.int32]) -> None:
        """``struct piece`` (n,) in no step, and the tenants (n,) whose threads these were."""
        victim, ns = self._tenants(tenant), pieces["ns"].astype(np.int64)
        add_rows(self.outside_seconds, victim, ns / 1e9)
        add_rows(self.outside_events, victim, pieces["events"])
        everything = np.ones((len(pieces), 1))
        rest = pieces["blame_rest_ns"].astype(np.int64)
        self.blame.add(victim[:, None], everything, ns, pieces["aggressors"], rest)

    def add_queue_waits(self, tenant: NDArray[np.int32], wait_ns: NDArray[np.int64]) -> None:
        """Requests' waits for the engine (n,), and whose requests they were (n,)."""
        waits = Profile.of(self._tenants(tenant), wait_ns, wait_ns[:, None])
        self.queue_waits = Profile.total([self.queue_waits, waits])

    def add_deschedules(
        self, tenants: Sequence[str], table: NDArray[np.uint64], now_ns: int
    ) -> None:
        """
        The kernel side's histograms as they are now; about once a second.

        :param tenants: distinct names, slot by slot; slots may be added, never renamed
        :param table: (slots, DESCHEDULES, buckets and then the sum in ns), cumulative
        """
        table = table[: len(tenants)].copy()
        new = table[:, :, :BUCKETS].sum(axis=1)
        new[: len(self.deschedules)] -= self.deschedules[:, :, :BUCKETS].sum(axis=1)
        cell = np.flatnonzero(new)
        count = new.reshape(-1)[cell].astype(np.int64)
        self.deschedule_window.add(Profile(cell, count, np.zeros((len(cell), 0), np.int64)), now_ns)
        self.descheduled, self.deschedules = tuple(tenants), table

    def _tenants(self, ids: NDArray[np.int32]) -> NDArray[np.int64]:
        return self.tenants.numbers(ids, self.names.tenants)

    def _rows(self, steps: Steps) -> NDArray[np.int64]:
        """(n, s) the row of each share, -1 for none."""
        served = steps.tenant >= 0
        pair = (steps.tenant.astype(np.int64) << 32 | steps.kind[:, None])[served]
        present, place = np.unique(pair, return_inverse=True)
        pairs = [divmod(p, 1 << 32) for p in present.tolist()]
        row = np.array(
            [
                self.row(self.names.tenants[tenant], self.names.kinds[kind])
                for tenant, kind in pairs
            ],
            np.int64,
        )
        rows = np.full(served.shape, -1, np.int64)
        rows[served] = row[place]
        return rows

    def _add_shares(self, steps: Steps, row_of_share: NDArray[np.int64]) -> None:
        step, column = np.nonzero(row_of_share >= 0)
        row, share = row_of_share[step, column], steps.share[step, column]
        # A counter cannot fall: a negative remainder is counted as lost instead.
        add_rows(self.seconds, row, share[:, None] * np.maximum(steps.ns[step], 0) / 1e9)
        np.add.at(self.helper_seconds, row, share * steps.helper_wait_ns[step] / 1e9)
        add_rows(self.events, row, share[:, None] * steps.events[step])
        self.is_stage[row[steps.parent[step] != 0]] = True

    def _add_profile(self, steps: Steps, row_of_share: NDArray[np.int64], now_ns: int) -> None:
        step, column = np.nonzero(row_of_share >= 0)
        # Once, even if several of its tenants are all ``other``.
        step, row = np.divmod(
            np.unique(step * len(self.seconds) + row_of_share[step, column]), len(self.seconds)
        )
        self.add_profile(Profile.of(row, steps.elapsed_ns[step], steps.ns[step]), now_ns)

    def _add_blame(self, steps: Steps, row_of_share: NDArray[np.int64]) -> None:
        whole = np.flatnonzero(steps.parent == 0)  # stages are in their steps
        victim = np.where(row_of_share >= 0, row_of_share // (MAX_KINDS + 1), -1)[whole]
        aggressors = take_rows(steps.aggressors, whole)
        ns, rest_ns = steps.ns[whole], steps.blame_rest_ns[whole]
        self.blame.add(victim, steps.share[whole], ns, aggressors, rest_ns)
