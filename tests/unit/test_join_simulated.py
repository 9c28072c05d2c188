"""
The join against a simulated truth: random timelines of threads, the marks and kernel pieces that
they would leave behind, and random ways in which these arrive.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tracer.catalog import CAUSES
from tracer.kernel.btf import wire
from tracer.ledger.books import CAUSE_AT, PageNames
from tracer.ledger.join import Closed, Join
from tracer.model import Steps

PIECE = wire().dtype("piece")
MARK = np.dtype([*wire().dtype("stepmark_done").descr, ("target", "u4"), ("slot", "u4")])
NAMES = PageNames(np.zeros((8, 256), np.int32), np.zeros((8, 256), np.int32))
WANTED = ["preempted", "runqueue"]
WAITS = ["quota", "lock", "io", "net", "sleep"]
ON_CPU = ["irq", "softirq"]
HIDDEN = ["steal", "stall"]

untimed = settings(deadline=None, max_examples=50)


@dataclass
class Mark:
    number: int
    parent: int
    begin: int
    ns: Counter[str] = field(default_factory=Counter)
    blame: Counter[int] = field(default_factory=Counter)
    switches: int = 0
    worst: int = 0


class Thread:
    """One thread, what truly happens to it, and what engine and kernel side write about it."""

    def __init__(self, rng: random.Random, target: int, slot: int) -> None:
        self.rng, self.target, self.slot = rng, target, slot
        self.now = rng.randrange(1, 1000)
        self.open: list[Mark] = []
        self.truth: dict[int, Mark] = {}
        self.numbers = 0
        self.marks: list[tuple[int, np.ndarray]] = []  # when readable, what
        self.pieces: list[tuple[int, np.ndarray]] = []
        self.outside = Counter()
        self.since, self.changed, self.hidden = self.now, False, Counter()
        self.piece = self._new_piece(self.now)

    # What the engine does.

    def begin(self) -> None:
        self.numbers += 1
        parent = self.open[-1].number if self.open else 0
        self.open.append(Mark(self.numbers, parent, self.now))
        self.since, self.changed = self.now, True

    def end(self) -> None:
        mark = self.open.pop()
        self.truth[mark.number] = mark
        done = np.zeros(1, MARK)
        done["number"], done["parent"] = mark.number, mark.parent
        done["begin_ns"], done["end_ns"] = mark.begin, self.now
        done["target"], done["slot"] = self.target, self.slot
        self.marks.append((self.now, done))
        self.since, self.changed = self.now, True

    # What happens to it.

    def spend(self, cause: str, ns: int) -> None:
        self.now += ns
        for mark in self.open:
            mark.ns[cause] += ns
        if not self.open and cause != "running":
            self.outside[cause] += ns

    def take_cpu(self, cause: str, ns: int) -> None:
        """Not seen before the next event. Which mark it fell into must be certain."""
        if not self.changed:
            self.spend(cause, ns)
            self.hidden[cause] += ns

    def event(self, cause: str, ns: int) -> None:
        self._settle()
        self.spend(cause, ns)
        self.piece["ns"][0, CAUSE_AT[cause]] += ns
        self.piece["until_ns"] = self.now
        if cause not in ON_CPU:
            self._waited(cause, ns)
        if not self.piece["step"] and self.rng.random() < 0.3:
            self._emit()

    # What the kernel side does.

    def _settle(self) -> None:
        if self.changed:
            for cause, ns in self.hidden.items():
                self.piece[f"tail_{cause}_ns"] = ns
            self.hidden.clear()
            self._emit()
            self.piece = self._new_piece(self.since)
            self.changed = False
        ran = self.now - int(self.piece["until_ns"][0]) - self.hidden.total()
        self.piece["ns"][0, CAUSE_AT["running"]] += ran
        for cause, ns in self.hidden.items():
            self.piece["ns"][0, CAUSE_AT[cause]] += ns
        self.hidden.clear()

    def _emit(self) -> None:
        self.pieces.append((self.now, self.piece))
        self.piece = self._new_piece(self.now)

    def _new_piece(self, from_ns: int) -> np.ndarray:
        piece = np.zeros(1, PIECE)
        piece["from_ns"] = piece["until_ns"] = from_ns
        piece["step"] = self.open[-1].number if self.open else 0
        piece["process"], piece["slot"] = self.target, self.slot
        piece["tid"] = 1000 + self.slot
        return piece

    def _waited(self, cause: str, ns: int) -> None:
        self.piece["switches"] += 1
        for mark in self.open:
            mark.switches += 1
        if cause not in WANTED:
            return
        if ns > self.piece["worst"]["ns"][0]:
            self.piece["worst"]["ns"] = ns
        by = self.rng.randrange(1, 12)
        for mark in self.open:
            mark.blame[by] += ns
            mark.worst = max(mark.worst, ns)
        aggressors = self.piece["aggressors"][0]
        place = np.flatnonzero((aggressors["who"]["tid"] == by) | (aggressors["ns"] == 0))
        if len(place):
            aggressors["who"]["tid"][place[0]] = by
            aggressors["ns"][place[0]] += ns
        else:
            self.piece["blame_rest_ns"] += ns

    def live(self, actions: int) -> None:
        for _ in range(actions):
            match self.rng.randrange(10):
                case 0 | 1 if len(self.open) < 4:
                    self.begin()
                case 2 | 3 if self.open:
                    self.end()
                case 4 if self.open:  # a tick: end and begin at the same instant
                    self.end()
                    self.begin()
                case 5:
                    self.take_cpu(self.rng.choice(HIDDEN), self.rng.randrange(1, 500))
                case 6:
                    self.event(self.rng.choice(ON_CPU), self.rng.randrange(1, 300))
                case 7:
                    self.event(self.rng.choice(WAITS), self.rng.randrange(1, 5000))
                case 8:
                    self.event(self.rng.choice(WANTED), self.rng.randrange(1, 5000))
                case _:
                    self.spend("running", self.rng.randrange(1, 2000))
        while self.open:
            self.end()
        self.event("irq", 1)
        self._emit()  # it exits


def simulated(rng: random.Random, threads: int = 3, actions: int = 60) -> list[Thread]:
    lives = [Thread(rng, target=1 + i % 2, slot=i) for i in range(threads)]
    for thread in lives:
        thread.live(actions)
    return lives


def arrivals(rng: random.Random, readable: list[tuple[int, np.ndarray]], drains: int) -> list:
    """The records in each of ``drains``: in order, none before it is readable."""
    last = max((at for at, _ in readable), default=0) + 1
    at_drain, earliest = [[] for _ in range(drains)], 0
    for at, record in readable:
        lag = rng.choice([0, 0, 0, 1, 3])
        earliest = min(max(earliest, at * (drains - 1) // last + 1 + lag), drains - 1)
        at_drain[earliest].append(record)
    return at_drain


def joined(rng: random.Random, threads: list[Thread]) -> tuple[Steps, Closed, Counter[str]]:
    """All steps, the closed rest, and what the join counted as lost."""
    lost: Counter[str] = Counter()
    join, drains = Join(NAMES, lost), rng.choice([2, 5, 20])
    marks = [arrivals(rng, t.marks, drains) for t in threads]
    pieces = [arrivals(rng, t.pieces, drains) for t in threads]
    end = max(t.now for t in threads) + 1
    closed = []
    for i in range(drains):
        arrived = [np.concatenate([np.zeros(0, MARK), *(r for m in marks for r in m[i])])]
        arrived += [np.concatenate([np.zeros(0, PIECE), *(r for p in pieces for r in p[i])])]
        closed.append(join.drain(*arrived, now_ns=end, ended=[1, 2] if i == drains - 1 else []))
    outside = np.concatenate([c.outside for c in closed])
    steps = Steps.concatenate([c.steps for c in closed])
    return steps, Closed(steps, outside, np.zeros(len(outside), np.int32)), +lost


def true_of(steps: Steps, threads: list[Thread]) -> list[Mark]:
    by_slot = {t.slot: t for t in threads}
    return [by_slot[int(s)].truth[int(n)] for s, n in zip(steps.slot, steps.number, strict=True)]


def ledgers(marks: list[Mark]) -> np.ndarray:
    rows = [[mark.ns[cause.name] for cause in CAUSES] for mark in marks]
    return np.array(rows).reshape(len(marks), len(CAUSES))


seeds = st.integers(0, 2**32 - 1)


@untimed
@given(seeds)
def test_every_ledger_is_the_true_one_however_records_arrive(seed):
    rng = random.Random(seed)
    threads = simulated(rng)

    steps, _, lost = joined(rng, threads)

    marks = true_of(steps, threads)
    assert_array_equal(ledgers(marks), steps.ns)
    assert_array_equal([mark.parent for mark in marks], steps.parent)
    assert_array_equal([mark.begin for mark in marks], steps.begin_ns)
    assert not lost


@untimed
@given(seeds)
def test_every_mark_comes_out_exactly_once(seed):
    rng = random.Random(seed)
    threads = simulated(rng)

    steps, _, _ = joined(rng, threads)

    expected = sorted((t.slot, number) for t in threads for number in t.truth)
    assert expected == sorted(zip(steps.slot.tolist(), steps.number.tolist(), strict=True))


@untimed
@given(seeds)
def test_switches_worst_wait_and_blame_are_those_of_all_pieces(seed):
    rng = random.Random(seed)
    threads = simulated(rng)

    steps, _, _ = joined(rng, threads)

    marks = true_of(steps, threads)
    assert_array_equal([mark.switches for mark in marks], steps.switches)
    assert_array_equal([mark.worst for mark in marks], steps.worst["ns"])
    named = steps.aggressors["ns"].sum(axis=1).astype(np.int64)
    assert_array_equal([mark.blame.total() for mark in marks], named + steps.blame_rest_ns)
    assert np.all(steps.aggressors["ns"][:, :-1] >= steps.aggressors["ns"][:, 1:])


@untimed
@given(seeds)
def test_what_happens_in_no_step_is_outside(seed):
    rng = random.Random(seed)
    threads = simulated(rng)

    _, closed, _ = joined(rng, threads)

    outside = Counter()
    for thread in threads:
        outside += thread.outside
    for cause in HIDDEN:
        del outside[cause]  # the tail of a piece outside has no end that is looked for
    sums = dict(zip((c.name for c in CAUSES), closed.outside["ns"].sum(axis=0), strict=True))
    assert outside == {name: int(sums[name]) for name in outside}


@untimed
@given(seeds)
def test_a_dropped_piece_makes_its_span_look_undisturbed(seed):
    rng = random.Random(seed)
    threads = simulated(rng, threads=1)
    thread = threads[0]  # its first piece tells that the kernel side watches
    dropped = [p for p in thread.pieces[1:] if rng.random() < 0.2]
    thread.pieces = [p for p in thread.pieces if not any(p is d for d in dropped)]

    steps, _, _ = joined(rng, threads)

    hidden = np.zeros_like(steps.ns)
    for row, mark in enumerate(true_of(steps, threads)):
        for _, piece in dropped:
            if piece["step"] and mark.begin <= piece["from_ns"][0] < steps.end_ns[row]:
                hidden[row] += piece["ns"][0].astype(np.int64)
                for cause in HIDDEN:
                    hidden[row, CAUSE_AT[cause]] += int(piece[f"tail_{cause}_ns"][0])
    hidden[:, CAUSE_AT["running"]] = 0
    expected = ledgers(true_of(steps, threads)) - hidden
    expected[:, CAUSE_AT["running"]] += hidden.sum(axis=1)
    assert_array_equal(expected, steps.ns)
