"""The longest deschedules of late, one for each tenant and cause: exemplars of their histograms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tracer.catalog import CAUSES
from tracer.ledger.grouping import group
from tracer.model import Exemplar, Records, take_rows
from tracer.targets.text import visible

_SECOND = 1_000_000_000


class LongestWaits:
    """Bounded by the tenants that ``model.Names`` has, times the causes."""

    def __init__(self, seconds: int) -> None:
        self._window_ns = seconds * _SECOND
        self._kept: dict[tuple[int, int], np.void] = {}

    def add(self, outliers: Records, tenant: NDArray[np.int32]) -> None:
        """``struct outlier`` (n,) and whose they were (n,): indices into ``Names.tenants``."""
        wait = outliers["wait"]
        longest_first = np.argsort(wait["ns"])[::-1]
        order, first = group(tenant[longest_first], wait["cause"][longest_first])
        rows = longest_first[order[first]]
        for of, row in zip(tenant[rows].tolist(), take_rows(outliers, rows), strict=True):
            key = of, int(row["wait"]["cause"])
            known = self._kept.get(key)
            if known is None or self._is_older_or_shorter(known["wait"], row["wait"]):
                self._kept[key] = row

    def _is_older_or_shorter(self, known: np.void, new: np.void) -> bool:
        old = int(known["at_ns"]) + self._window_ns < int(new["at_ns"])
        return old or bool(known["ns"] <= new["ns"])

    def exemplars(
        self, tenants: Sequence[str], now_ns: int, unix_seconds: float
    ) -> dict[Sequence[str], Sequence[Exemplar]]:
        """
        (tenant, cause) -> the longest.

        :param unix_seconds: the wall clock's time when the monotonic clock showed ``now_ns``
        """
        return {
            (tenants[tenant], CAUSES[cause].name): [_exemplar(row, now_ns, unix_seconds)]
            for (tenant, cause), row in self._kept.items()
            if now_ns - int(row["wait"]["at_ns"]) <= self._window_ns
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
