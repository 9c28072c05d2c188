"""
The longest deschedules of late: one for each tenant and cause as exemplars of their histograms, and
of every 10 s the longest of all, whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tracer.catalog import CAUSES
from tracer.kernel.btf import wire
from tracer.ledger.grouping import largest_of_each
from tracer.model import Exemplar, Records, join_records, take_rows
from tracer.targets.text import visible

MOST = 100
"""Of every 10 s, besides the longest of each tenant and cause."""

_SECOND = 1_000_000_000
_SLOT_NS = 10 * _SECOND


class LongestWaits:
    """Bounded by MOST and by the tenants that ``model.Names`` has, times the causes."""

    def __init__(self, seconds: int) -> None:
        self._window_ns = seconds * _SECOND
        self._kept: Records = np.zeros(0, wire().dtype("outlier"))
        self._tenant = np.zeros(0, np.int32)
        self._number = np.zeros(0, np.int64)
        self.seen = 0
        """Outliers so far, which numbers them in the order in which they came."""

    def add(self, outliers: Records, tenant: NDArray[np.int32]) -> None:
        """``struct outlier`` (n,) and whose they were (n,): indices into ``Names.tenants``."""
        if not len(outliers):
            return
        number = np.arange(self.seen, self.seen + len(outliers))
        self.seen += len(outliers)
        every = join_records([self._kept, outliers])
        of = np.concatenate([self._tenant, tenant])
        ns, at = (every["wait"][name].astype(np.int64) for name in ("ns", "at_ns"))
        slot = at // _SLOT_NS
        longest = np.union1d(
            largest_of_each(ns, MOST, slot),
            largest_of_each(ns, 1, slot, of, every["wait"]["cause"]),
        )
        kept = longest[at[longest] > at.max() - self._window_ns - _SLOT_NS]
        self._kept, self._tenant = take_rows(every, kept), of[kept]
        self._number = np.concatenate([self._number, number])[kept]

    def since(self, seen: int) -> tuple[Records, NDArray[np.int32]]:
        """Those that came after the first ``seen``: outliers, and whose they were."""
        new = self._number >= seen
        return take_rows(self._kept, new), self._tenant[new]

    def exemplars(
        self, tenants: Sequence[str], now_ns: int, unix_seconds: float
    ) -> dict[Sequence[str], Sequence[Exemplar]]:
        """
        (tenant, cause) -> the longest.

        :param unix_seconds: the wall clock's time when the monotonic clock showed ``now_ns``
        """
        wait = self._kept["wait"]
        late = np.flatnonzero(now_ns - wait["at_ns"].astype(np.int64) <= self._window_ns)
        ns, cause, tenant = wait["ns"][late].astype(np.int64), wait["cause"][late], self._tenant
        longest = late[largest_of_each(ns, 1, tenant[late], cause)]
        return {
            (tenants[of], CAUSES[row["wait"]["cause"]].name): [_exemplar(row, now_ns, unix_seconds)]
            for of, row in zip(tenant[longest], take_rows(self._kept, longest), strict=True)
        }


def _exemplar(outlier: np.void, now_ns: int, unix_seconds: float) -> Exemplar:
    wait = outlier["wait"]
    labels = {"step_number": str(outlier["step"]), "tid": str(outlier["tid"])}
    if wait["by"]["tid"]:
        labels["aggressor"] = visible(wait["by"]["comm"])
    return Exemplar(
        value=int(wait["ns"]) / 1e9,
        labels=labels,
        unix_seconds=unix_seconds - (now_ns - int(wait["at_ns"])) / 1e9,
    )
