"""What the join remembers of each thread between two drains."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tracer.kernel.btf import wire
from tracer.ledger.timeline import SLOTS, thread_of
from tracer.model import Records

_TARGETS = wire().enum("limits")["MAX_PROCESSES"]
_NEVER = np.iinfo(np.int64).max

ThreadIds = NDArray[np.int64]
"""Of ``timeline.thread_of``."""


class Threads:
    """
    One number a thread and question, 0 for never.

    Pages of ``np.zeros`` take no memory unwritten; ``np.zeros_like`` would write them.
    """

    def __init__(self) -> None:
        self._watched_since = np.zeros(_TARGETS * SLOTS, np.int64)
        self._complete_until = np.zeros(_TARGETS * SLOTS, np.int64)
        self._cut = np.zeros(_TARGETS * SLOTS, np.int64)
        self._tid = np.zeros(_TARGETS * SLOTS, np.uint32)

    def watch(self, pieces: Records) -> None:
        """Note that the kernel side sees these threads, pieces outside of steps included."""
        rows = np.flatnonzero(pieces["slot"] < SLOTS)
        thread = thread_of(pieces["process"], pieces["slot"])[rows]
        begin, last_event = (pieces[at][rows].astype(np.int64) for at in ("from_ns", "until_ns"))
        # Time outside of steps may have marks in it that ended before the page was found.
        since = np.where(pieces["step"][rows] == 0, last_event, begin)
        first, place = np.unique(thread, return_index=True)
        new = self._watched_since[first] == 0
        self._watched_since[first[new]] = since[place[new]]
        np.maximum.at(self._complete_until, thread, begin)
        self._tid[thread] = pieces["tid"][rows]

    def known_since(self, thread: ThreadIds) -> NDArray[np.int64]:
        """From when on a span without a piece means that the thread ran."""
        watched = self._watched_since[thread]
        return np.where(watched > 0, np.maximum(watched, self._cut[thread]), _NEVER)

    def complete_until(self, thread: ThreadIds) -> NDArray[np.int64]:
        """All pieces that begin before are here, because a thread's pieces arrive in order."""
        return self._complete_until[thread]

    def cut(self, thread: ThreadIds) -> NDArray[np.int64]:
        """Where the thread was cut last: what ended until then is closed."""
        return self._cut[thread]

    def move_cut(self, thread: ThreadIds, ns: NDArray[np.int64] | int) -> None:
        np.maximum.at(self._cut, thread, ns)

    def tid(self, thread: ThreadIds) -> NDArray[np.uint32]:
        """As last seen; 0 when no piece told it."""
        return self._tid[thread]

    def forget(self, targets: Iterable[int]) -> None:
        for target in targets:
            of_target = slice(target * SLOTS, (target + 1) * SLOTS)
            for memory in (self._watched_since, self._complete_until, self._cut, self._tid):
                memory[of_target] = 0
