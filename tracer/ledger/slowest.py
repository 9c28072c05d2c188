"""The slowest steps of each kind, whole, so that they can be explained."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracer.ledger.grouping import largest_of_each
from tracer.model import Steps

MOST = 20
"""Steps of a kind."""

MAX_KINDS = 64
"""Kinds numbered higher share one place, so that no engine can make this grow."""

_SLOT_NS = 10_000_000_000


class Slowest:
    """
    Of the steps that ended in the last seconds.

    The slowest of every 10 s are kept: those of the window are among them whenever it ends.
    """

    def __init__(self, seconds: int) -> None:
        self._window_ns = seconds * 1_000_000_000
        self._kept: Steps | None = None

    def add(self, steps: Steps, now_ns: int) -> None:
        slowest = _slowest(steps, steps.end_ns // _SLOT_NS)
        if self._kept is not None:
            in_window = self._kept.take(self._kept.end_ns > now_ns - self._window_ns)
            slowest = Steps.concatenate([in_window, slowest])
        self._kept = _slowest(slowest, slowest.end_ns // _SLOT_NS)

    def steps(self, now_ns: int) -> Steps | None:
        """Slowest first; None when there has been no step yet."""
        if self._kept is None:
            return None
        in_window = self._kept.take(self._kept.end_ns > now_ns - self._window_ns)
        slowest = _slowest(in_window, np.zeros(len(in_window), np.int64))
        return slowest.take(np.argsort(-slowest.elapsed_ns, kind="stable"))


def _slowest(steps: Steps, slot: NDArray[np.int64]) -> Steps:
    """The MOST slowest of every kind in every slot."""
    kind = np.minimum(steps.kind, MAX_KINDS)
    return steps.take(largest_of_each(steps.elapsed_ns, MOST, slot, kind))
