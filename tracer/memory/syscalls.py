"""The system calls that Python has no function for: besides libbpf, all that needs pointers."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOVE_PAGES = {"x86_64": 279, "aarch64": 239}
"""``__NR_move_pages`` of arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic."""

_GET_MEMPOLICY = {"x86_64": 239, "aarch64": 236}
"""``__NR_get_mempolicy``, likewise."""

_MPOL_F_ADDR = 1 << 1  # include/uapi/linux/mempolicy.h
_MOST_NODES = 1024  # no kernel has more: MAX_NUMNODES

_libc = ctypes.CDLL(None, use_errno=True)


def why_not() -> str:
    """Why ``nodes_of_pages`` cannot be used here; empty where it can."""
    try:
        nodes_of_pages(os.getpid(), np.zeros(1, np.uint64))
    except OSError as e:
        return f"move_pages: {e.strerror or e}: containers' default seccomp profiles deny it"
    return ""


def nodes_of_pages(pid: int, addresses: NDArray[np.uint64]) -> NDArray[np.int32]:
    """
    move_pages(2) in query mode: where the pages at these addresses of a process are.

    The kernel takes the process's memory lock for 16 pages at a time
    (``DO_PAGES_STAT_CHUNK_NR`` of mm/migrate.c), however many are asked for.

    :returns: (n,) the page's node, or -errno: ``-ENOENT`` when the process has not touched it
    :raises OSError: the process is gone, or may not be looked at
    """
    asked = np.ascontiguousarray(addresses, np.uint64)
    status = np.full(len(asked), -1, np.int32)
    _call(
        _MOVE_PAGES,
        f"move_pages of process {pid}",
        ctypes.c_int(pid),
        ctypes.c_ulong(len(asked)),
        ctypes.c_void_p(asked.ctypes.data),
        ctypes.c_void_p(None),  # no nodes to move to: a query
        ctypes.c_void_p(status.ctypes.data),
        ctypes.c_int(0),
    )
    return status


def policy_at(address: int) -> tuple[int, frozenset[int]]:
    """
    get_mempolicy(2) of what this process has mapped there: the mode with its flags, and the nodes.

    :raises OSError: nothing is mapped there, or the call is denied
    """
    mode, mask = ctypes.c_int(), (ctypes.c_uint8 * (_MOST_NODES // 8))()
    _call(
        _GET_MEMPOLICY,
        "get_mempolicy",
        ctypes.byref(mode),
        mask,
        ctypes.c_ulong(_MOST_NODES),
        ctypes.c_void_p(address),
        ctypes.c_ulong(_MPOL_F_ADDR),
    )
    nodes = np.flatnonzero(np.unpackbits(np.array(mask), bitorder="little"))
    return mode.value, frozenset(nodes.tolist())


def _call(numbers: Mapping[str, int], what: str, *arguments: Any) -> None:
    number = numbers.get(platform.machine())
    if number is None:
        raise OSError(f"{what}: its number is not known on {platform.machine()}")
    if _libc.syscall(number, *arguments) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), what)
