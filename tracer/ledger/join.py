"""
Finished marks and kernel pieces, as they arrive, into steps.

Both arrive when they like: a mark is read from shared memory some time after it ended, a piece is
emitted at the first kernel event after the mark changed. A step is closed when everything of it is
here: when a piece of the same thread that begins at or after its end has arrived, because a
thread's pieces arrive in order. A thread without kernel events emits nothing, so after ``hold_ns``
a step is closed with what there is.

Even a thread that goes to sleep emits its last step's piece on the way, so 2 s are generous. The
exception is a thread that computes for longer than that on a CPU without a timer tick
(nohz_full): the piece of its last event comes too late, and is counted.

Closing is a cut through a thread's time: what ended before it is closed, what began after it is
held. Stages are held until their step has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracer.ledger import books
from tracer.ledger.threads import ThreadIds, Threads
from tracer.ledger.timeline import SLOTS, is_torn, place_of, thread_of
from tracer.model import Records, Steps, join_records, take_rows


class Cap(NamedTuple):
    """How much is held at most. Beyond, a thread is cut where it stands, and counted."""

    reason: str
    of_thread: int
    in_total: int


MARKS = Cap("held_marks_full", 4096, 65_536)
PIECES = Cap("held_pieces_full", 1024, 32_768)


@dataclass(frozen=True, slots=True)
class Closed:
    """What a drain completed."""

    steps: Steps
    """Steps, and stages as steps of their own, in order of their end."""

    outside: Records
    """``struct piece``: what happened in no step, or in one that is not known, or no more."""

    outside_tenant: NDArray[np.int32]
    """Whom these threads work for: index into ``Names.tenants``."""


class Join:
    """Holds what is not complete yet, bounded by the caps above."""

    def __init__(
        self, names: books.PageNames, lost: Counter[str], *, hold_ns: int = 2_000_000_000
    ) -> None:
        """
        :param names: may be changed in place as pages are found
        :param lost: is counted into: marks and pieces that were cut off early,
            ``held_marks_full`` and ``held_pieces_full``; pieces in no mark, ``piece_late`` after a
            cut, else ``piece_without_mark``; and what ``books.close`` counts
        """
        self._names, self._lost, self._hold_ns = names, lost, hold_ns
        self._threads = Threads()
        self._marks: tuple[Records, ...] = ()
        self._pieces: tuple[Records, ...] = ()

    def drain(
        self, marks: Records, pieces: Records, now_ns: int, ended: Collection[int] = ()
    ) -> Closed:
        """
        Take what arrived since the last call, give what is complete.

        :param marks: (n,) ``struct stepmark_done`` of steps and stages with two more fields,
            ``target`` (index) and ``slot``, checked and in the order that ``MarkPage.finished``
            gives
        :param pieces: (p,) ``struct piece`` in the order of the kernel's ring
        :param now_ns: a time after both were read
        :param ended: indices of targets that are gone and whose last pieces are here: what is held
            of them is closed now, and the index may be given to another process
        """
        self._threads.watch(pieces)
        in_no_step = (pieces["step"] == 0) | (pieces["slot"] >= SLOTS)
        outside = take_rows(pieces, in_no_step)
        pieces = join_records([*self._pieces, take_rows(pieces, ~in_no_step)])
        marks = join_records([*self._marks, marks])
        seen, marked = _threads_of(pieces, "process"), _threads_of(marks, "target")
        end, place = marks["end_ns"].astype(np.int64), place_of(pieces)
        known_since, late = self._threads.known_since(marked), place < self._threads.cut(seen)

        self._cut_complete(marked, end, marks["parent"] == 0, now_ns)
        for each in (seen, marked):
            self._threads.move_cut(each[np.isin(each // SLOTS, list(ended))], now_ns)
        self._cut_overfull(marked[end > self._threads.cut(marked)], MARKS, now_ns)
        self._cut_overfull(seen[place >= self._threads.cut(seen)], PIECES, now_ns)

        closes, leaves = end <= self._threads.cut(marked), place < self._threads.cut(seen)
        self._marks = (take_rows(marks, ~closes),)
        self._pieces = (take_rows(pieces, ~leaves),)
        leaving, late = take_rows(pieces, leaves), late[leaves]
        steps, booked = books.close(
            take_rows(marks, closes),
            leaving,
            known_since=known_since[closes],
            tid=self._threads.tid(marked[closes]),
            names=self._names,
            lost=self._lost,
        )
        stray = ~booked & ~is_torn(leaving)
        self._lost["piece_late"] += int((stray & late).sum())
        self._lost["piece_without_mark"] += int((stray & ~late).sum())
        self._threads.forget(ended)
        outside = join_records([outside, take_rows(leaving, ~booked)])
        return Closed(steps, outside, self._names.tenants_of(outside))

    def _cut_complete(
        self, thread: ThreadIds, end: NDArray[np.int64], is_step: NDArray[np.bool_], now_ns: int
    ) -> None:
        safe = np.maximum(self._threads.complete_until(thread), now_ns - self._hold_ns)
        complete = is_step & (end <= safe)
        self._threads.move_cut(thread[complete], end[complete])

    def _cut_overfull(self, holding: ThreadIds, cap: Cap, now_ns: int) -> None:
        """``holding`` has each thread as often as it would go on to hold something."""
        if len(holding) <= cap.of_thread:
            return
        thread, count = np.unique(holding, return_counts=True)
        overfull = (count > cap.of_thread) | (len(holding) > cap.in_total)
        self._threads.move_cut(thread[overfull], now_ns)
        self._lost[cap.reason] += int(count[overfull].sum())


def _threads_of(records: Records, target: str) -> ThreadIds:
    return thread_of(records[target], records["slot"])
