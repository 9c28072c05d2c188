"""The system calls that Python has no function for: besides libbpf, all that needs pointers."""

from __future__ import annotations

import ctypes
import os
import platform

import numpy as np
from numpy.typing import NDArray

_MOVE_PAGES = {"x86_64": 279, "aarch64": 239}
"""``__NR_move_pages`` of arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic."""

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
    number = _MOVE_PAGES.get(platform.machine())
    if number is None:
        raise OSError(f"the number of move_pages is not known on {platform.machine()}")
    result = _libc.syscall(
        number,
        ctypes.c_int(pid),
        ctypes.c_ulong(len(asked)),
        ctypes.c_void_p(asked.ctypes.data),
        ctypes.c_void_p(None),  # no nodes to move to: a query
        ctypes.c_void_p(status.ctypes.data),
        ctypes.c_int(0),
    )
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), f"move_pages of process {pid}")
    return status
