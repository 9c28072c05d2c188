"""Who ran while a step wanted a CPU: the shares of its pieces put together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracer.ledger.grouping import group, rank_within
from tracer.model import Records, take_rows


def merge(
    step: NDArray[np.intp], aggressors: Records, steps: int
) -> tuple[Records, NDArray[np.int64]]:
    """
    The largest aggressors of each step, and the ns of those that found no room.

    :param step: (n,) which of the ``steps`` steps a row belongs to
    :param aggressors: (n, k) ``struct aggressor``; ns = 0 is none. One thread is one aggressor.
    :returns: (steps, k) largest first and (steps,); together they keep every step's total
    """
    some = np.flatnonzero(aggressors["ns"])
    each, step = take_rows(aggressors.reshape(-1), some), step[some // aggressors.shape[1]]
    order, first = group(step, each["who"]["tgid"], each["who"]["tid"])
    merged, step = take_rows(each, order[first]), step[order[first]]
    merged["ns"] = np.add.reduceat(each["ns"][order], first)

    order = np.lexsort((-merged["ns"].astype(np.int64), step))
    merged, step = take_rows(merged, order), step[order]
    rank = rank_within(step)
    most = aggressors.shape[1]
    fits = rank < most
    largest = np.zeros(steps * most, aggressors.dtype)
    largest.put(step[fits] * most + rank[fits], take_rows(merged, fits))
    rest = np.zeros(steps, np.int64)
    np.add.at(rest, step[~fits], merged["ns"][~fits].astype(np.int64))
    return largest.reshape(steps, most), rest
