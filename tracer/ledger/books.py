"""
The books of finished marks: where each nanosecond between begin and end went.

The begins and ends of a thread's marks, its boundaries, cut its time into spans. A kernel piece
belongs to the span that it begins in; from its last event to the end of the span the thread was
on the CPU. A span without a piece ran undisturbed, if the kernel side was watching. What remains
is ``unexplained``: positive where the kernel side saw nothing though it should, negative where a
piece reaches beyond its span.

The limit of this: a piece that was lost makes its span look undisturbed. Only the kernel side
knows, and counts it (LOST_PIECES_RING_FULL); while that counter grows, ``running`` is too large.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracer.catalog import CAUSES, EVENTS
from tracer.ledger import aggressors
from tracer.ledger.grouping import Positions
from tracer.ledger.timeline import Timeline, after, is_torn
from tracer.model import Records, Steps, take_rows

MAX_DEPTH = 32
"""Marks nested deeper are not delivered: a hostile page must not multiply our work."""

CAUSE_AT = {cause.name: at for at, cause in enumerate(CAUSES)}
_RUNNING, _UNEXPLAINED = CAUSE_AT["running"], CAUSE_AT["unexplained"]
_FROM_OUTSIDE = ("steal", "stall")  # what a piece may have of the time after its last event
_SUMMED = ("switches", "involuntary", "migrations", "helper_wait_ns", "blame_rest_ns")


@dataclass(frozen=True, slots=True)
class PageNames:
    """What the ids in mark pages mean. Row t is the page of the target with index t."""

    kinds: NDArray[np.int32]
    """(targets, STEPMARK_KINDS) index into ``model.Names.kinds``."""

    tenants: NDArray[np.int32]
    """(targets, STEPMARK_TENANTS) index into ``model.Names.tenants``. Column 0, no tenant given,
    holds the tenant of the target itself."""

    def tenants_of(self, records: Records) -> NDArray[np.int32]:
        """
        (n,) index into ``model.Names.tenants``, for ``struct piece`` or ``struct outlier`` (n,).

        The kernel side passes on what it read in the page: a number that no page has room for is
        taken for none given.
        """
        number = np.where(records["tenant"] < self.tenants.shape[1], records["tenant"], 0)
        return self.tenants[records["process"].astype(np.intp), number.astype(np.intp)]


def close(
    marks: Records,
    pieces: Records,
    *,
    known_since: NDArray[np.int64],
    tid: NDArray[np.uint32],
    names: PageNames,
    lost: Counter[str],
) -> tuple[Steps, NDArray[np.bool_]]:
    """
    The steps and stages that ``marks`` are, in order of their end, with what the pieces say.

    :param marks: (n,) ``struct stepmark_done`` with ``target`` and ``slot``; a step comes with
        every stage in it
    :param pieces: (p,) ``struct piece`` of the same threads, in any order
    :param known_since: (n,) from when on a span of the mark's thread that has no piece ran
    :param tid: (n,) the mark's thread, where no piece tells it
    :param lost: is counted into: marks ``mark_too_deep``; pieces ``piece_step_unknown``, whose own
        mark never came, so that the mark around it has them; pieces ``steal_unplaced`` and
        ``stall_unplaced``, with more of it than time on the CPU after their last event
    :returns: the steps, and (p,) which pieces lie in one
    """
    line = Timeline.of(marks, pieces)
    entries, unplaced = _entries(line, known_since, pieces)
    delivered = np.flatnonzero(line.depth() <= MAX_DEPTH)
    mark, piece = line.pairs(delivered)
    booked, labelled = np.zeros((2, len(pieces)), np.bool_)
    booked[piece] = True
    labelled[piece[marks["number"][mark] == pieces["step"][piece]]] = True
    lost["mark_too_deep"] += len(marks) - len(delivered)
    lost["piece_step_unknown"] += int((booked & ~labelled & ~is_torn(pieces)).sum())
    for cause, pieces_with_more in unplaced.items():
        lost[f"{cause}_unplaced"] += int((booked & pieces_with_more).sum())

    tid = tid.copy()
    tid[mark] = pieces["tid"][piece]
    steps = _steps(
        marks, line.between(entries), tid, names, mark=mark, pieces=take_rows(pieces, piece)
    )
    return steps.take(delivered[np.argsort(steps.end_ns[delivered], kind="stable")]), booked


def _entries(
    line: Timeline, known_since: NDArray[np.int64], pieces: Records
) -> tuple[NDArray[np.int64], dict[str, NDArray[np.bool_]]]:
    """
    What each point of the timeline stands for until the next: (2n + p, causes and _SUMMED). And by
    cause of _FROM_OUTSIDE which pieces (p,) have more of it than time on the CPU after their last
    event.
    """
    ns, until = pieces["ns"].astype(np.int64), pieces["until_ns"].astype(np.int64)
    ns[:, _RUNNING] -= _before_torn(line, pieces)
    tail = np.maximum(after(line.ns)[line.piece] - until, 0)
    unplaced = {}
    for cause in _FROM_OUTSIDE:
        surfaced = pieces[f"tail_{cause}_ns"].astype(np.int64)
        taken = np.minimum(tail, surfaced)
        ns[:, CAUSE_AT[cause]] += taken
        tail = tail - taken
        unplaced[cause] = taken < surfaced
    ns[:, _RUNNING] += tail

    entries = np.zeros((len(line.ns), len(CAUSES) + len(_SUMMED)), np.int64)
    entries[line.piece] = np.column_stack([ns, *(pieces[name] for name in _SUMMED)])
    without = ~line.is_piece & ~after(line.is_piece) & (line.thread == after(line.thread))
    entries[without, _RUNNING] = _undisturbed(line, known_since, until)[without]
    return entries, unplaced


def _undisturbed(
    line: Timeline, known_since: NDArray[np.int64], until: NDArray[np.int64]
) -> NDArray[np.int64]:
    """
    From each boundary to the next, what neither lies before the kernel side watched nor in a piece.

    A piece may reach beyond its span: the thread was interrupted between taking the time of a
    boundary and writing it.
    """
    known, ends = np.zeros_like(line.ns), np.zeros_like(line.ns)
    known[line.begin] = known[line.end] = known_since
    ends[line.piece] = until
    last_piece = line.latest(line.is_piece)
    begin = np.maximum(np.maximum(line.ns, known), np.where(last_piece >= 0, ends[last_piece], 0))
    return np.maximum(after(line.ns) - begin, 0)


def _before_torn(line: Timeline, pieces: Records) -> NDArray[np.int64]:
    """(p,) what a torn piece has of the mark before: it ran there, up to the boundary."""
    boundary = line.latest(~line.is_piece)[line.piece]
    early = np.where(boundary >= 0, line.ns[boundary], 0) - pieces["from_ns"].astype(np.int64)
    ran = pieces["ns"][:, _RUNNING].astype(np.int64)
    return np.where(is_torn(pieces), np.clip(early, 0, ran), 0)


def _steps(
    marks: Records,
    books: NDArray[np.int64],
    tid: NDArray[np.uint32],
    names: PageNames,
    *,
    mark: Positions,
    pieces: Records,
) -> Steps:
    """One row a mark. ``pieces[i]`` lies in ``marks[mark[i]]``; ``books`` has their sums."""
    ns = books[:, : len(CAUSES)]
    ns[:, _UNEXPLAINED] += (marks["end_ns"] - marks["begin_ns"]).astype(np.int64) - ns.sum(axis=1)
    sums = dict(zip(_SUMMED, books[:, len(CAUSES) :].T, strict=True))
    helper_worst = np.zeros(len(marks), np.int64)
    np.maximum.at(helper_worst, mark, pieces["helper_worst_ns"].astype(np.int64))
    largest, rest = aggressors.merge(mark, pieces["aggressors"], len(marks))
    tenant, share = _shares(marks, names)
    return Steps(
        target=marks["target"].astype(np.uint32),
        tid=tid,
        slot=marks["slot"].astype(np.uint32),
        number=marks["number"],
        parent=marks["parent"],
        kind=names.kinds[marks["target"], marks["kind"]],
        tenant=tenant,
        share=share,
        begin_ns=marks["begin_ns"].astype(np.int64),
        end_ns=marks["end_ns"].astype(np.int64),
        ns=ns,
        switches=sums["switches"].astype(np.uint32),
        involuntary=sums["involuntary"].astype(np.uint32),
        migrations=sums["migrations"].astype(np.uint32),
        helper_wait_ns=sums["helper_wait_ns"],
        helper_worst_ns=helper_worst,
        events=_events(mark, pieces["events"], len(marks)),
        worst=_worst(mark, pieces["worst"], len(marks)),
        aggressors=largest,
        blame_rest_ns=sums["blame_rest_ns"] + rest,
    )


def _events(mark: Positions, events: NDArray[np.uint32], marks: int) -> NDArray[np.int64]:
    """(marks, e) the sums of each mark's events; ``mark`` is sorted."""
    sums = np.zeros((marks, len(EVENTS)), np.int64)
    present, first = np.unique(mark, return_index=True)
    sums[present] = np.add.reduceat(events, first, dtype=np.int64)
    return sums


def _worst(mark: Positions, waits: Records, marks: int) -> Records:
    """(marks,) the longest of each mark's waits; ``mark`` is sorted."""
    longest_first = np.lexsort((-waits["ns"].astype(np.int64), mark))
    present, first = np.unique(mark, return_index=True)
    worst = np.zeros(marks, waits.dtype)
    worst.put(present, take_rows(waits, longest_first[first]))
    return worst


def _shares(marks: Records, names: PageNames) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Tenants and shares of each mark, as in ``Steps``. A step that names none is its target's."""
    given = np.arange(marks["shares"].shape[1]) < marks["nr_shares"][:, None]
    tenant = np.where(given, marks["shares"]["tenant"], 0)
    given[:, 0] = True
    weight = np.where(given, marks["shares"]["weight"], 0).astype(np.float64)
    weight[marks["nr_shares"] == 0, 0] = 1
    named = np.where(given, names.tenants[marks["target"][:, None], tenant], -1)
    return named.astype(np.int32), weight / weight.sum(axis=1, keepdims=True)
