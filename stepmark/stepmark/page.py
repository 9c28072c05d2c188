"""
The mark page of this process: ``include/stepmark_page.h`` in Python.

The header is the one definition of the layout; a test compiles it and compares every number here.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
from collections.abc import Iterator

MAGIC = 0x6B72616D70657473
VERSION = 1
KINDS = 256
TENANTS = 256
NAME_LEN = 64
SLOTS = 256
PROBES = 8
RING = 2048
SHARES = 8

STEP = 1
QUEUED = 2

HEADER_SIZE = 4096
AT_KINDS = HEADER_SIZE
AT_TENANTS = AT_KINDS + KINDS * NAME_LEN
AT_SLOTS = AT_TENANTS + TENANTS * NAME_LEN
SLOT_SIZE = 64
AT_RINGS = AT_SLOTS + SLOTS * SLOT_SIZE
DONE_SIZE = 128
PAGE_SIZE = AT_RINGS + SLOTS * RING * DONE_SIZE

# struct stepmark_header
AT_MAGIC = 0
AT_NR_KINDS = 48
AT_NR_TENANTS = 52
AT_LOST_SLOTS_FULL = 56
AT_LOST_KINDS_FULL = 64
AT_LOST_TENANTS_FULL = 72
AT_LOST_SHARES_FULL = 80
_HEADER = struct.Struct("=IIQ5II")  # version ... pid, after the magic

# struct stepmark_slot, by offset in the slot
SLOT_SEQ = 0
SLOT_SEQ_END = 32
SLOT_FINISHED = 40
SLOT_TID = 48

# What follows the first word of a slot and of a finished mark. `pack_into` clears its range before
# it stores the fields in order; so that first word is stored on its own before, and differs from
# `seq_end` and `number_end` until the last field is there.
SLOT_BODY = struct.Struct("@QQIIQ")  # step, since_ns, kind, tenant, seq_end
DONE_BODY = struct.Struct("@QQQ80sQ8x")  # parent, begin_ns, end_ns, what ... shares, number_end
DONE_TAIL = struct.Struct(f"@III4x{SHARES * 8}s")  # what, kind, nr_shares, shares

_WORD = struct.Struct("=I")
_MFD_NOEXEC_SEAL = 8  # include/uapi/linux/memfd.h, since Linux 6.3


class Page:
    """A memfd named ``stepmark``, mapped shared. The mapping keeps a descriptor of it open."""

    def __init__(self) -> None:
        """Raises OSError when this system gives no such page."""
        fd = _memfd()
        try:
            os.ftruncate(fd, PAGE_SIZE)
            self.map = mmap.mmap(fd, PAGE_SIZE)  # duplicates the descriptor
        finally:
            os.close(fd)
        self.words = memoryview(self.map).cast("Q")
        """The page as numbers of 8 bytes: the way to store one of them at once."""

        limits = (KINDS, TENANTS, NAME_LEN, SLOTS, RING)
        _HEADER.pack_into(self.map, 8, VERSION, HEADER_SIZE, PAGE_SIZE, *limits, os.getpid())
        _WORD.pack_into(self.map, AT_NR_KINDS, 1)
        _WORD.pack_into(self.map, AT_NR_TENANTS, 1)
        self.words[AT_MAGIC] = MAGIC

    def close(self) -> None:
        self.words.release()
        self.map.close()

    def write_name(self, table: int, count: int, index: int, text: bytes) -> None:
        """Store a name in the table at offset ``table``, then its length at offset ``count``."""
        at = table + index * NAME_LEN
        self.map[at : at + len(text)] = text
        _WORD.pack_into(self.map, count, index + 1)

    def lose(self, counter: int, number: int = 1) -> None:
        """Add to the loss counter at offset ``counter``."""
        self.words[counter // 8] += number

    def lost(self) -> dict[str, int]:
        return {
            "slots_full": self.words[AT_LOST_SLOTS_FULL // 8],
            "kinds_full": self.words[AT_LOST_KINDS_FULL // 8],
            "tenants_full": self.words[AT_LOST_TENANTS_FULL // 8],
            "shares_full": self.words[AT_LOST_SHARES_FULL // 8],
        }

    def claim(self, tid: int) -> int | None:
        """The index of a slot for the calling thread, in no step; None when none is to be had."""
        for index in self._free_slots(tid):
            at = AT_SLOTS + index * SLOT_SIZE
            seq, seq_end = self.words[at // 8], self.words[(at + SLOT_SEQ_END) // 8]
            if seq:  # its last thread may have died inside a step, or inside a mark
                self.words[at // 8] = seq = max(seq, seq_end) + 1
                SLOT_BODY.pack_into(self.map, at + 8, 0, 0, 0, 0, seq)
            _WORD.pack_into(self.map, at + SLOT_TID, tid)
            return index
        self.lose(AT_LOST_SLOTS_FULL)
        return None

    def _free_slots(self, tid: int) -> Iterator[int]:
        living = _threads()
        for probe in range(PROBES):
            index = (tid + probe) % SLOTS
            (holder,) = _WORD.unpack_from(self.map, AT_SLOTS + index * SLOT_SIZE + SLOT_TID)
            # Without ourselves in it, the list is of another pid namespace and tells nothing.
            if holder in (0, tid) or (tid in living and holder not in living):
                yield index


def _memfd() -> int:
    if not hasattr(os, "memfd_create"):
        raise OSError(errno.ENOSYS, "this system has no memfd_create")
    try:
        # Where vm.memfd_noexec is 2, no other is allowed.
        return os.memfd_create("stepmark", os.MFD_CLOEXEC | _MFD_NOEXEC_SEAL)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.memfd_create("stepmark", os.MFD_CLOEXEC)


def _threads() -> set[int]:
    """The living threads of this process; empty when /proc does not tell."""
    try:
        return set(map(int, os.listdir("/proc/self/task")))  # noqa: PTH208 - pathlib loads slowly
    except OSError:
        return set()
