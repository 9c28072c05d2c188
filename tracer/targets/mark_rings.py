"""
The rings of finished marks, followed entry by entry.

What is read is bounded by what is new. A ring is read without stopping its writer, so each entry is
checked afterwards for having been written over meanwhile.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from tracer.model import Records, take_rows
from tracer.targets.mark_bytes import PageBytes, layout

_MAX_LEAP = 1 << 32
"""A slot cannot finish more between two reads: it would be a mark a nanosecond for 4 s."""


class Rings:
    """All rings of a page, from now on."""

    def __init__(self, page: PageBytes, losses: Counter[str]) -> None:
        self._page = page
        self._losses = losses
        self._seen = page.slots()["finished"]

    def read(self, least: int = 1) -> tuple[Records, NDArray[np.intp]]:
        """
        The entries written since they were read last, and the slot of each.

        (n,) ``struct stepmark_done``, whole but not otherwise checked, in the order written within
        each slot. What is missing was counted.

        :param least: a ring with fewer new entries is left for later: each costs a system call
        """
        end = self._page.slots()["finished"]
        if np.array_equal(end, self._seen):
            return np.empty(0, layout().done), np.empty(0, np.intp)
        count = self._count_new(end, least)
        first = end - count
        moved = np.flatnonzero(count)
        parts = [self._page.ring(int(s), int(first[s]), int(count[s])) for s in moved]
        done = np.frombuffer(b"".join(parts), layout().done)
        slots = np.repeat(moved, count[moved].astype(np.intp))

        safe = self._not_overrun(slots, first, count) if len(done) else np.empty(0, bool)
        whole = done["number"] == done["number_end"]
        self._losses["mark_overrun"] += int(np.count_nonzero(~safe))
        self._losses["mark_torn"] += int(np.count_nonzero(safe & ~whole))
        return take_rows(done, safe & whole), slots[safe & whole]

    def _count_new(self, end: NDArray[np.uint64], least: int) -> NDArray[np.uint64]:
        """Entries to read per slot, from what each slot says it has written."""
        new = end - self._seen  # modulo 2^64: a count that ran backwards is a leap
        left = new < least
        new[left] = 0
        self._seen = np.where(left, self._seen, end)
        leaps = new > _MAX_LEAP
        new[leaps] = 0
        # Not the oldest entry: in its place the next one may be being written.
        readable: NDArray[np.uint64] = np.minimum(new, np.uint64(layout().limits["RING"] - 1))
        self._losses["mark_implausible"] += int(np.count_nonzero(leaps))
        self._losses["mark_overrun"] += int((new - readable).sum())
        return readable

    def _not_overrun(
        self, slots: NDArray[np.intp], first: NDArray[np.uint64], count: NDArray[np.uint64]
    ) -> NDArray[np.bool_]:
        """Which entries cannot have been written over while they were read."""
        end = self._page.slots()["finished"]
        position = np.arange(len(slots), dtype=np.uint64) - (np.cumsum(count) - count)[slots]
        written_since = end[slots] - (first[slots] + position)
        safe: NDArray[np.bool_] = written_since < layout().limits["RING"]
        return safe
