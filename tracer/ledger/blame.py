"""Who took the time that a tenant's threads wanted a CPU, by cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tracer.catalog import TO_OTHERS
from tracer.ledger.books import CAUSE_AT
from tracer.ledger.grouping import group
from tracer.ledger.labels import Labels
from tracer.model import Records, take_rows

NameRunners = Callable[[Records], Sequence[str]]
"""``struct runner`` (n,) -> names: a traced process's tenant, else a container, else the comm."""

MAX_AGGRESSORS = 200

_NOBODY_RAN = {"steal": "hypervisor", "quota": "cpu quota", "rt_limit": "real-time limit"}
"""Who is to blame for a cause that no thread on this machine is."""

_CAUSES = (*TO_OTHERS, *_NOBODY_RAN)


class Blame:
    """Seconds by victim, aggressor and cause. Aggressors beyond MAX_AGGRESSORS are ``other``."""

    def __init__(self, name_runners: NameRunners, victims: int) -> None:
        """``victims`` is how many numbers a victim's label may have."""
        self.name_runners = name_runners
        self._labels = Labels(MAX_AGGRESSORS)
        self._ns = np.zeros((victims, MAX_AGGRESSORS + 1, len(_CAUSES)))

    def add(
        self,
        victim: NDArray[np.int64],
        share: NDArray[np.float64],
        ns: NDArray[np.int64],
        aggressors: Records,
        rest_ns: NDArray[np.int64],
    ) -> None:
        """
        Which of two causes an aggressor's time was, the kernel does not say: it is split as the
        victim's own time is.

        :param victim: (n, s) number of a tenant's label, negative for none
        :param share: (n, s) of what follows
        :param ns: (n, c) ledgers
        :param aggressors: (n, k) ``struct aggressor``
        :param rest_ns: (n,) what no aggressor is known for
        """
        waited = ns[:, [CAUSE_AT[cause] for cause in TO_OTHERS]]
        total = waited.sum(axis=1, keepdims=True)
        split = np.divide(waited, total, out=np.zeros(waited.shape), where=total > 0)
        by, of, by_ns = self._runners(aggressors)
        for at, _ in enumerate(TO_OTHERS):
            self._book(victim[of], share[of], by, at, by_ns * split[of, at])
            self._book(victim, share, 0, at, rest_ns * split[:, at])
        for at, cause in enumerate(_NOBODY_RAN, len(TO_OTHERS)):
            everyone = self._labels.number(_NOBODY_RAN[cause])
            self._book(victim, share, everyone, at, ns[:, CAUSE_AT[cause]])

    def add_seconds(self, victim: int, aggressor: str, cause: str, seconds: float) -> None:
        """What was blamed before, by the labels that :meth:`seconds` gives."""
        self._ns[victim, self._labels.number(aggressor), _CAUSES.index(cause)] += seconds * 1e9

    def seconds(self, victims: Sequence[str]) -> Iterator[tuple[tuple[str, str, str], float]]:
        """(victim, aggressor, cause) -> seconds; ``victims`` are the labels of the numbers."""
        for victim, by, cause in np.argwhere(self._ns).tolist():
            names = victims[victim], self._labels.names[by], _CAUSES[cause]
            yield names, self._ns[victim, by, cause] / 1e9

    def _runners(
        self, aggressors: Records
    ) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.int64]]:
        """Number of the aggressor's label, row that it belongs to, and ns, of each known one."""
        some = np.flatnonzero(aggressors["ns"])
        each = take_rows(aggressors.reshape(-1), some)
        who = each["who"]
        order, first = group(who["cgroup_id"], who["tgid"], who["tid"])
        names = self.name_runners(take_rows(each, order[first])["who"])
        number = np.zeros(len(each), np.int64)
        sizes = np.diff(first, append=len(each))
        number[order] = np.repeat([self._labels.number(name) for name in names], sizes)
        return number, some // aggressors.shape[1], each["ns"].astype(np.int64)

    def _book(
        self,
        victim: NDArray[np.int64],
        share: NDArray[np.float64],
        by: NDArray[np.int64] | int,
        cause: int,
        ns: NDArray[np.floating] | NDArray[np.int64],
    ) -> None:
        some = np.flatnonzero(ns > 0)  # most causes have cost few steps anything
        row, column = np.nonzero(victim[some] >= 0)
        row = some[row]
        by = by if isinstance(by, int) else by[row]
        cell = (victim[row, column] * self._ns.shape[1] + by) * self._ns.shape[2] + cause
        np.add.at(self._ns.reshape(-1), cell, share[row, column] * ns[row])
