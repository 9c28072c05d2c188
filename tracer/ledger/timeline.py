"""The begins and ends of marks and the kernel's pieces, as one sequence in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tracer.kernel.btf import wire
from tracer.ledger.grouping import Positions
from tracer.model import Records

SLOTS = wire().enum("stepmark_limits")["STEPMARK_SLOTS"]

STEP_UNKNOWN = np.uint64(2**64 - 1)  # STEP_UNKNOWN in bpf/wire.h

_T = TypeVar("_T", bound=np.generic)


def thread_of(target: NDArray[np.integer], slot: NDArray[np.integer]) -> NDArray[np.int64]:
    """One number for the index of a target and a slot of its mark page."""
    return target.astype(np.int64) * SLOTS + slot


def is_torn(pieces: Records) -> NDArray[np.bool_]:
    """(p,) which pieces are of a thread that was interrupted while it wrote a mark."""
    torn: NDArray[np.bool_] = pieces["step"] == STEP_UNKNOWN
    return torn


def place_of(pieces: Records) -> NDArray[np.int64]:
    """
    (p,) a time at which the thread was in the mark that the piece belongs to.

    Its begin; but a torn piece begins with the last event under the mark before. It ends with the
    thread in the middle of writing: under the mark that is being written.
    """
    return np.where(is_torn(pieces), pieces["until_ns"], pieces["from_ns"]).astype(np.int64)


def after(values: NDArray[_T]) -> NDArray[_T]:
    """What ``values`` has for the point that follows each; 0 after the last."""
    following = np.zeros_like(values)
    following[:-1] = values[1:]
    return following


@dataclass(frozen=True, slots=True)
class Timeline:
    """
    n marks and p pieces as one sequence of 2n + p points: by thread, then by time.

    A piece stands at its ``place_of``. At one instant boundaries come before pieces: a piece that
    begins there belongs to the span that begins there, never to the one that ends.
    """

    begin: Positions
    """(n,) where each mark begins in the sequence."""

    end: Positions
    piece: Positions
    """(p,) where each piece stands in the sequence."""

    thread: NDArray[np.int64]
    """(2n + p,) of each point of the sequence, as the two that follow."""

    ns: NDArray[np.int64]
    is_piece: NDArray[np.bool_]

    @classmethod
    def of(cls, marks: Records, pieces: Records) -> Timeline:
        n, p = len(marks), len(pieces)
        marked = thread_of(marks["target"], marks["slot"])
        thread = np.concatenate([marked, marked, thread_of(pieces["process"], pieces["slot"])])
        boundaries = np.concatenate([marks["begin_ns"], marks["end_ns"]]).astype(np.int64)
        ns = np.concatenate([boundaries, place_of(pieces)])
        is_piece = np.arange(2 * n + p) >= 2 * n
        order = np.lexsort((is_piece, ns, thread))
        place = np.empty(len(order), np.intp)
        place[order] = np.arange(len(order))
        begin, end, piece = np.split(place, [n, 2 * n])
        return cls(begin, end, piece, thread[order], ns[order], is_piece[order])

    def latest(self, chosen: NDArray[np.bool_]) -> Positions:
        """(2n + p,) the last chosen point up to each point, -1 when its thread has none yet."""
        at = np.maximum.accumulate(np.where(chosen, np.arange(len(chosen)), -1))
        latest: Positions = np.where(self.thread[at] == self.thread, at, -1)
        return latest

    def between(self, entries: NDArray[np.int64]) -> NDArray[np.int64]:
        """
        The sum of ``entries`` from the begin to the end of each mark, stages inside it included.

        :param entries: (2n + p, c) what each point stands for until the next
        :returns: (n, c)
        """
        before = np.zeros((len(entries) + 1, entries.shape[1]), np.int64)
        np.cumsum(entries, axis=0, out=before[1:])
        return before[self.end] - before[self.begin]

    def depth(self) -> NDArray[np.int64]:
        """(n,) how many marks of its thread each mark lies in, itself included."""
        change = np.zeros(len(self.ns), np.int64)
        change[self.begin], change[self.end] = 1, -1
        depth: NDArray[np.int64] = np.cumsum(change)[self.begin]
        return depth

    def pairs(self, marks: Positions) -> tuple[Positions, Positions]:
        """Each of ``marks`` with every piece in it: two columns of positions, by mark."""
        pieces_before: Positions = np.cumsum(self.is_piece) - self.is_piece
        first = pieces_before[self.begin[marks]]
        count = pieces_before[self.end[marks]] - first
        nth = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        by_time = np.argsort(self.piece)
        return np.repeat(marks, count), by_time[np.repeat(first, count) + nth]
