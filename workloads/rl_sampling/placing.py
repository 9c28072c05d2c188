"""
On which NUMA node the queue lies: the memory binding that the system we model did not have.

Pinning decides where threads run, never where memory is. Without a binding each page of the queue
is on the node of whoever touched it first, until NUMA balancing, where that is on, moves it after
its threads. What is bound it moves only when the binding asks for that.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

_MBIND = {"x86_64": 237, "aarch64": 235}
"""``__NR_mbind`` of arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic."""

# include/uapi/linux/mempolicy.h
_MPOL_BIND, _MPOL_F_NUMA_BALANCING, _MPOL_MF_MOVE_ALL = 2, 1 << 13, 1 << 2
_MOST_NODES = 1024

Nodes = Mapping[int, frozenset[int]]
"""Those with CPUs: node -> its CPUs."""


class Place(StrEnum):
    FIRST_TOUCH = "first-touch"
    RIGHT = "right"
    """Bound to the node of the inference thread."""

    WRONG = "wrong"
    """Bound to another node."""

    MOVED = "moved"
    """Touched first on another node, and left to NUMA balancing."""


def nodes(directory: Path = Path("/sys/devices/system/node")) -> Nodes:
    found = {
        int(path.parent.name.removeprefix("node")): _cpus(path.read_text())
        for path in directory.glob("node[0-9]*/cpulist")
    }
    return {node: cpus for node, cpus in sorted(found.items()) if cpus}


def possible(place: Place, there: Nodes) -> Place:
    """The place, or first touch where there is no other node to be on."""
    return place if len(there) > 1 else Place.FIRST_TOUCH


def place(fd: int, where: Place, inference: frozenset[int], there: Nodes) -> None:
    """Put the pages of a shared segment there, before anybody else touches one."""
    if where is Place.FIRST_TOUCH:
        return
    right = next(node for node, cpus in there.items() if cpus & inference)
    wrong = next(node for node in there if node != right)
    with mmap.mmap(fd, os.fstat(fd).st_size) as segment:
        bind(segment, {right if where is Place.RIGHT else wrong})
        touch(segment)
        if where is Place.MOVED:
            bind(segment, set(there), balanced=True)


def bind(
    memory: mmap.mmap, to: set[int], *, balanced: bool = False, move: bool = False, begin: int = 0
) -> None:
    """
    mbind(2) of a mapping from its byte ``begin`` on; of a shared one for all who map it.

    :param balanced: NUMA balancing may move its pages among these nodes
    :param move: what this process has touched moves there now, whoever else has: CAP_SYS_NICE
    """
    mask = (ctypes.c_ulong * (_MOST_NODES // 64))()
    for node in to:
        mask[node // 64] |= 1 << node % 64
    # The address alone: who holds on to the buffer keeps the mapping from being closed.
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory, begin))
    mode = _MPOL_BIND | (_MPOL_F_NUMA_BALANCING if balanced else 0)
    arguments = (
        ctypes.c_void_p(start),
        ctypes.c_ulong(len(memory) - begin),
        ctypes.c_int(mode),
        mask,
        ctypes.c_ulong(_MOST_NODES),
        ctypes.c_uint(_MPOL_MF_MOVE_ALL if move else 0),
    )
    if ctypes.CDLL(None, use_errno=True).syscall(_MBIND[platform.machine()], *arguments):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), f"mbind to nodes {sorted(to)}")


def touch(memory: mmap.mmap) -> None:
    """Have each page in memory."""
    for at in range(0, len(memory), mmap.PAGESIZE):
        memory[at] = memory[at]


def _cpus(listed: str) -> frozenset[int]:
    """The numbers in ``0-3,8``."""
    spans = (part.partition("-")[::2] for part in listed.strip().split(",") if part)
    return frozenset(n for a, b in spans for n in range(int(a), int(b or a) + 1))
