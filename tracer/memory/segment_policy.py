"""
The memory policy of a shared segment, however large those are who map it.

The kernel keeps it with a file of tmpfs, so a mapping of our own has it, too. Nothing of it is
touched, and no lock of a target is held. Of hugetlbfs each mapping has its own.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np

from tracer.host.facts import Fact, Known, Unknown, format_cpus
from tracer.memory.areas import Area
from tracer.memory.pages import PAGE
from tracer.memory.syscalls import policy_at

# As mpol_to_str() of mm/mempolicy.c writes them into numa_maps.
_MODES = (
    *("default", "prefer", "bind", "interleave", "local", "prefer (many)"),
    "weighted interleave",
)
_FLAGS = {1 << 15: "static", 1 << 14: "relative", 1 << 13: "balancing"}


def segment_policy(pid: int, area: Area, proc: Path = Path("/proc")) -> Fact[str]:
    """That of the file at the begin of the area: ``default`` when it has none of its own."""
    path = proc / str(pid) / "map_files" / f"{area.start:x}-{area.end:x}"
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError as e:
        return Unknown(f"{path}: {e.strerror}")
    try:
        if os.fstatvfs(fd).f_bsize != PAGE:
            return Unknown("only numa_maps has policies of huge pages")
        with mmap.mmap(fd, PAGE, prot=mmap.PROT_READ, offset=area.offset) as mapping:
            mode, nodes = policy_at(np.frombuffer(mapping, np.uint8).ctypes.data)
    except (OSError, ValueError) as e:  # ValueError: the file has become shorter
        return Unknown(f"policy of {area.path}: {e}")
    finally:
        os.close(fd)
    return Known(_in_words(mode, nodes), "get_mempolicy")


def _in_words(mode: int, nodes: frozenset[int]) -> str:
    flags = "|".join(word for flag, word in _FLAGS.items() if mode & flag)
    number = mode & ~sum(_FLAGS)
    name = _MODES[number] if number < len(_MODES) else f"mode {number}"
    told = f"{name}={flags}" if flags else name
    return f"{told}:{format_cpus(nodes)}" if nodes else told
