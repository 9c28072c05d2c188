"""
``/proc/PID/numa_maps``: the policy and the pages of every area of a process.

The kernel walks the page tables for it and holds the process's memory lock over each area, 0.16 ms
for a thousand pages where it was measured. So it is for small processes; see ``process.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tracer.host.facts import Fact, Known, Unknown, convert, text
from tracer.memory.pages import PAGE

_NODE = re.compile(r"\bN(\d+)=(\d+)")
_PAGE_KB = re.compile(r"\bkernelpagesize_kB=(\d+)")
_ONE_LINE = 256  # bytes: more than a first line that is a program's code, with a short policy

DEFAULT = "default"
"""The policy of what nobody has bound: memory comes from the node of the CPU that touches first."""


@dataclass(frozen=True, slots=True)
class Row:
    start: int
    policy: str
    """As the kernel writes it: ``default``, ``bind:0``, ``prefer:1``, ``interleave:0-1``."""

    pages: dict[int, int]
    """By node, in units of PAGE."""


def numa_maps(pid: int, proc: Path = Path("/proc")) -> Fact[dict[int, Row]]:
    """By the address where the area begins."""
    rows = convert(text(proc / str(pid) / "numa_maps"), lambda t: list(map(_row, t.splitlines())))
    if isinstance(rows, Unknown):
        return rows
    return Known({row.start: row for row in rows.value}, rows.source)


def policy_of_thread(thread: Path) -> Fact[str]:
    """
    The thread's own memory policy, ``thread`` being its directory in /proc.

    An area without a policy of its own shows the thread's. The first area is a program's code,
    which nobody binds; a short read walks no other.
    """
    try:
        with (thread / "numa_maps").open("rb", buffering=0) as file:
            first = file.read(_ONE_LINE).decode(errors="replace")
    except FileNotFoundError:
        return Unknown("no numa_maps: the thread ended, or the kernel has no NUMA")
    except OSError as e:
        return Unknown(f"numa_maps: {e.strerror}")
    words = first.split(maxsplit=2)
    return Known(words[1], "numa_maps") if len(words) > 1 else Unknown("numa_maps is empty")


def _row(line: str) -> Row:
    start, policy, _ = f"{line} ".split(" ", 2)
    # Huge pages of hugetlbfs are counted as such, transparent ones in pages of the base size.
    size = _PAGE_KB.search(line)
    each = int(size[1]) * 1024 // PAGE if size else 1
    return Row(int(start, 16), policy, dict(_nodes(line, each)))


def _nodes(line: str, each: int) -> Iterator[tuple[int, int]]:
    for node, pages in _NODE.findall(line):
        yield int(node), int(pages) * each
