"""
Steps, stages, ticks and queue waits.

What a mark says (kind, tenants, shares) is packed once and kept; entering and leaving it stores a
few words in the calling thread's own slot and ring, without a lock and without a system call.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from typing import Any, Callable, TypeVar, Union, cast

from stepmark import page as layout
from stepmark.calls import marked
from stepmark.page import Page, write_slot
from stepmark.process import process
from stepmark.shares import NOBODY, Shares, shares_of

Tenants = Union[str, Mapping[str, int], None]
"""Whom a step serves: one tenant, several with weights, or those of the step it lies in."""

now_ns = time.monotonic_ns
"""CLOCK_MONOTONIC in ns, the clock of all marks: for ``queued``."""

Function = TypeVar("Function", bound=Callable[..., Any])


class Mark:
    """
    A step kind and whom it serves. Usable any number of times, by all threads: as context
    manager, or as decorator of functions, generators and coroutines.
    """

    __slots__ = ("_stages", "inherits", "kind", "shares", "tail", "ticks")

    def __init__(self, kind: int, shares: Shares | None, ticks: bool = False) -> None:
        self.kind = kind
        self.inherits = shares is None
        self.shares = shares or NOBODY
        self.ticks = ticks
        self.tail = layout.DONE_TAIL.pack(layout.STEP, kind, self.shares.number, self.shares.packed)
        self._stages: dict[int, Mark] = {}

    def stage(self, kind: int) -> Mark:
        """The mark of a stage that serves the same tenants as this one."""
        known = self._stages.get(kind)
        if known is None:
            known = self._stages[kind] = Mark(kind, self.shares)
        return known

    def __enter__(self) -> None:
        _thread.writer.begin(self)

    def __exit__(self, *_: object) -> None:
        _thread.writer.end(self)

    def __call__(self, function: Function) -> Function:
        return cast(Function, marked(function, self))


class Writer:
    """The marks of one thread, in a slot and ring that are its own."""

    __slots__ = ("_at", "_finished", "_frames", "_number", "_page", "_ring", "_seq")

    def __init__(self, page: Page, at: int) -> None:
        self._page, self._at = page, at
        self._ring = layout.AT_RINGS + (at - layout.AT_SLOTS) // layout.SLOT_SIZE * (
            layout.RING * layout.DONE_SIZE
        )
        self._finished = page.words[(at + layout.SLOT_FINISHED) // 8]
        # Numbers go on where the slot's last thread ended: it used at most one a mark.
        self._seq = self._number = page.words[at // 8]
        # What is open, innermost last: as entered, as marked, number, begin.
        self._frames: list[tuple[Mark, Mark, int, int]] = []

    def begin(self, entered: Mark) -> None:
        self._begin(entered, now_ns())

    def end(self, entered: Mark) -> None:
        now = now_ns()
        if self._close(entered, now):
            self._show_innermost(now)

    def tick(self, entered: Mark) -> None:
        now = now_ns()
        self._close_tick(now)
        self._begin(entered, now)

    def tock(self) -> None:
        now = now_ns()
        if self._close_tick(now):
            self._show_innermost(now)

    def queued(self, since_ns: int, tail: bytes) -> None:
        self._finish(0, 0, since_ns, now_ns(), tail)

    def _begin(self, entered: Mark, now: int) -> None:
        mark = entered
        if mark.inherits and self._frames:
            mark = self._frames[-1][1].stage(mark.kind)
        self._number = number = self._number + 1
        self._frames.append((entered, mark, number, now))
        self._show(number, now, mark)

    def _close(self, entered: Mark, now: int) -> bool:
        """End the innermost open use of a mark and all inside it; False when there is none."""
        frames = self._frames
        depth = len(frames)
        while depth:
            depth -= 1
            if frames[depth][0] is entered:
                self._close_to(depth, now)
                return True
        return False

    def _close_tick(self, now: int) -> bool:
        for entered, *_ in self._frames:
            if entered.ticks:
                return self._close(entered, now)
        return False

    def _close_to(self, depth: int, now: int) -> None:
        frames = self._frames
        while len(frames) > depth:
            _, mark, number, begin = frames.pop()
            parent = frames[-1][2] if frames else 0
            self._finish(number, parent, begin, now, mark.tail)
            if mark.shares.dropped:
                process.lose_shares(mark.shares.dropped)

    def _finish(self, number: int, parent: int, begin: int, end: int, tail: bytes) -> None:
        page = self._page
        at = self._ring + self._finished % layout.RING * layout.DONE_SIZE
        page.words[at // 8] = number
        layout.DONE_BODY.pack_into(page.map, at + 8, parent, begin, end, tail, number)
        self._finished += 1
        page.words[(self._at + layout.SLOT_FINISHED) // 8] = self._finished

    def _show_innermost(self, now: int) -> None:
        if self._frames:
            _, mark, number, _ = self._frames[-1]
            self._show(number, now, mark)
        else:
            self._show(0, now, _OUTSIDE)

    def _show(self, number: int, now: int, mark: Mark) -> None:
        self._seq += 1
        write_slot(self._page, self._at, self._seq, number, now, mark.kind, mark.shares.largest)


class _Idle(Writer):
    """Marks of a thread that has no slot: they go nowhere."""

    def __init__(self) -> None:
        pass

    def begin(self, entered: Mark) -> None:
        pass

    def end(self, entered: Mark) -> None:
        pass

    def tick(self, entered: Mark) -> None:
        pass

    def tock(self) -> None:
        pass

    def queued(self, since_ns: int, tail: bytes) -> None:
        pass


class _Thread(threading.local):
    writer: Writer

    def __getattr__(self, _: str) -> Writer:
        """The writer, at the first mark of a thread."""
        slot = process.claim_slot()
        self.writer = Writer(*slot) if slot else _Idle()
        return self.writer


_OUTSIDE = Mark(0, NOBODY)
_MOST_MARKS = 4096  # then the marks kept are dropped: tenants with ever new weights must not leak

_thread = _Thread()
_marks: dict[Any, Mark] = {}
_waits: dict[str, bytes] = {}


def step(kind: str, tenants: Tenants = None) -> Mark:
    """
    One unit of inference work of this thread: a forward pass, a decode iteration.

    ``tenants`` is the one it serves, or several with weights (integers > 0); of more than 8 the
    largest are kept. A step inside a step is a stage, and serves the same tenants if it names none.
    Raises TypeError or ValueError for names and weights that are none.
    """
    key = (kind, tenants if tenants.__class__ is str else _frozen(tenants))
    return _marks.get(key) or _keep(key, kind, tenants, False)


def stage(kind: str) -> Mark:
    """A part of the step around it, for the same tenants. Outside of a step, a step."""
    return step(kind)


def tick(kind: str, tenants: Tenants = None) -> None:
    """
    End the step that this thread's last tick began, and begin the next at the same instant.

    For loops in which a step lasts from one output to the next. What lies open inside the step
    ends with it. ``tock`` ends the last step.
    """
    key = (kind, tenants if tenants.__class__ is str else _frozen(tenants), True)
    _thread.writer.tick(_marks.get(key) or _keep(key, kind, tenants, True))


def tock() -> None:
    """End the step that this thread's last tick began."""
    _thread.writer.tock()


def queued(since_ns: int, tenant: str) -> None:
    """
    A request of this tenant waited from ``since_ns`` (of ``now_ns``) until now.

    Raises ValueError when that lies in the future, as stamps of other clocks do.
    """
    if since_ns > now_ns():
        raise ValueError(f"queued since {since_ns}, which is yet to come: stamp with now_ns()")
    _thread.writer.queued(since_ns, _waits.get(tenant) or _keep_wait(tenant))


def _frozen(tenants: Tenants) -> object:
    return tuple(tenants.items()) if isinstance(tenants, Mapping) else tenants


def _keep(key: object, kind: str, tenants: Tenants, ticks: bool) -> Mark:
    if not isinstance(kind, str):
        raise TypeError(f"step kind is {kind!r}, must be a str")
    mark = Mark(process.kind(kind), None if tenants is None else shares_of(tenants), ticks)
    if len(_marks) >= _MOST_MARKS:
        _marks.clear()
    _marks[key] = mark
    return mark


def _keep_wait(tenant: str) -> bytes:
    shares = shares_of(tenant)
    if len(_waits) >= _MOST_MARKS:
        _waits.clear()
    _waits[tenant] = layout.DONE_TAIL.pack(layout.QUEUED, 0, shares.number, shares.packed)
    return _waits[tenant]


def _forget_parent() -> None:
    """In a forked child: no slot yet, and no open step."""
    global _thread  # noqa: PLW0603 - one thread's state per process is what it is
    process.forget_parent()
    _thread = _Thread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
