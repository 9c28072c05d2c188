"""The marks of one thread, stored in a slot and ring that are its own."""

from __future__ import annotations

import os
import threading
import time

from stepmark import page as layout
from stepmark.label import NO_STEP, Label
from stepmark.page import DONE_SIZE, RING, Page
from stepmark.process import process

now_ns = time.monotonic_ns
pack_slot = layout.SLOT_BODY.pack_into
pack_done = layout.DONE_BODY.pack_into


class Writer:
    """
    Every step passes through ``begin`` and ``end``: few calls, no lock, no system call, and the
    order of stores that ``stepmark_page.h`` asks for.
    """

    __slots__ = (
        "_at_finished",
        "_at_seq",
        "_body",
        "_finished",
        "_map",
        "_number",
        "_open",
        "_ring",
        "_seq",
        "_words",
    )

    def __init__(self, page: Page, index: int) -> None:
        slot = layout.AT_SLOTS + index * layout.SLOT_SIZE
        self._map, self._words = page.map, page.words
        self._at_seq, self._at_finished = slot // 8, (slot + layout.SLOT_FINISHED) // 8
        self._body = slot + 8
        self._ring = layout.AT_RINGS + index * RING * DONE_SIZE
        self._finished = page.words[self._at_finished]
        # Numbers go on where the slot's last thread ended: it used at most one a mark.
        self._seq = self._number = page.words[self._at_seq]
        # Innermost last: what was entered, what it says here, number, begin.
        self._open: list[tuple[Label, Label, int, int]] = [(NO_STEP, NO_STEP, 0, 0)]

    # Each mark stores its `seq` before it reads the clock: a thread that is interrupted in between
    # is seen to be writing a mark, and the time it then loses is not taken for the step before.

    def begin(self, entered: Label) -> None:
        seq = self._seq = self._words[self._at_seq] = self._seq + 1
        self._open_at(now_ns(), entered, seq)

    def end(self, entered: Label) -> None:
        """A step ends with all that is open inside it; one that is not open cannot end."""
        frames = self._open
        seq = self._seq = self._words[self._at_seq] = self._seq + 1
        now = now_ns()
        if frames[-1][0] is entered or any(frame[0] is entered for frame in frames):
            while self._close_at(now) is not entered:
                pass
        _, label, number, _ = frames[-1]
        pack_slot(self._map, self._body, number, now, label.kind, label.tenant, seq)

    def tick(self, entered: Label) -> None:
        running = self._running_tick()
        seq = self._seq = self._words[self._at_seq] = self._seq + 1
        now = now_ns()
        while running and self._close_at(now) is not running:
            pass
        self._open_at(now, entered, seq)

    def tock(self) -> None:
        running = self._running_tick()
        if running:
            self.end(running)

    def queued(self, since_ns: int, now: int, tail: bytes) -> None:
        self._finish(0, 0, since_ns, now, tail)

    def _running_tick(self) -> Label | None:
        return next((frame[0] for frame in self._open if frame[0].ticks), None)

    def _open_at(self, now: int, entered: Label, seq: int) -> None:
        label = self._open[-1][1].stage(entered.kind) if entered.inherits else entered
        self._number = number = self._number + 1
        self._open.append((entered, label, number, now))
        pack_slot(self._map, self._body, number, now, label.kind, label.tenant, seq)

    def _close_at(self, now: int) -> Label:
        """End what is innermost, and tell what that was."""
        entered, label, number, begin = self._open.pop()
        self._finish(number, self._open[-1][2], begin, now, label.tail)
        if label.dropped:
            process.lose_shares(label.dropped)
        return entered

    def _finish(self, number: int, parent: int, begin: int, end: int, tail: bytes) -> None:
        """Append to the ring of finished marks."""
        at = self._ring + self._finished % RING * DONE_SIZE
        self._words[at >> 3] = number
        pack_done(self._map, at + 8, parent, begin, end, tail, number)
        self._finished = self._words[self._at_finished] = self._finished + 1


class Idle(Writer):
    """For a thread that found no slot, or no page: its marks go nowhere."""

    def __init__(self) -> None:
        pass

    def begin(self, entered: Label) -> None:
        pass

    def end(self, entered: Label) -> None:
        pass

    def tick(self, entered: Label) -> None:
        pass

    def tock(self) -> None:
        pass

    def queued(self, since_ns: int, now: int, tail: bytes) -> None:
        pass


class Unattached(Idle):
    """For a thread that has not marked yet; what it may end began elsewhere."""

    def begin(self, entered: Label) -> None:
        _attach().begin(entered)

    def tick(self, entered: Label) -> None:
        _attach().tick(entered)

    def queued(self, since_ns: int, now: int, tail: bytes) -> None:
        _attach().queued(since_ns, now, tail)


class Thread(threading.local):
    writer: Writer = Unattached()


thread = Thread()


def _attach() -> Writer:
    slot = process.claim_slot()
    thread.writer = Writer(*slot) if slot else Idle()
    return thread.writer


def _after_fork_in_child() -> None:
    """The parent's page is not ours to write, and its open steps are not ours to end."""
    process.forget_parent()
    thread.__dict__.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
