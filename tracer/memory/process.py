"""
What memory one process has: private pages by node, and the shared segments that it maps.

A small process is read whole in ``numa_maps``. Of a larger one that would hold the memory lock, on
which its threads wait to map and unmap, for too long: its pages are sampled, and its segments asked
for their policy one by one.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tracer.host.facts import Fact, Known, Unknown, convert, text, value_of
from tracer.memory.areas import (
    Area,
    Identity,
    addresses_of,
    areas,
    memory_devices,
    shared_memory,
)
from tracer.memory.numa_maps import DEFAULT, Row, numa_maps, policy_of_thread
from tracer.memory.pages import SAMPLE, Ask, Pages, chosen, counted
from tracer.memory.segment_policy import segment_policy

WALKED = 1 << 16
"""Resident pages up to which a process is read whole: about 10 ms under its memory lock."""

_PROCESS_GONE = (errno.ESRCH, errno.EINVAL)  # EINVAL: it has no memory any more


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    private: Fact[Pages]
    segments: Mapping[Identity, tuple[Area, ...]]
    policies: Mapping[Identity, Fact[str]]
    """Of those segments, as the kernel writes them."""

    touched: Mapping[Identity, Pages]
    """Of those segments, as far as this process has; empty when it was not read whole."""

    locked_bytes: Fact[int]
    """That cannot move: locked by itself, or pinned for a device."""


def memory_of(
    pid: int, ask: Ask, random: np.random.Generator, proc: Path = Path("/proc")
) -> Fact[ProcessMemory]:
    found = areas(pid, proc)
    if isinstance(found, Unknown):
        return found
    segments = shared_memory(found.value, memory_devices(pid, proc))
    private = [area for area in found.value if area.is_private]
    rows = _walked(pid, proc)
    if isinstance(rows, Known):
        pages: Fact[Pages] = Known(_pages(private, rows.value), rows.source)
        touched = {identity: _pages(parts, rows.value) for identity, parts in segments.items()}
    else:
        touched = {}
        pages = _sampled(pid, private, ask, random)
    policies = {
        identity: _policy(pid, parts[0], rows, proc) for identity, parts in segments.items()
    }
    locked = convert(text(proc / str(pid) / "status"), _locked)
    return Known(ProcessMemory(pages, segments, policies, touched, locked), found.source)


def _locked(status: str) -> int:
    """See proc_pid_status(5)."""
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    kib = [int(fields.get(name, "").split()[0]) for name in ("VmLck", "VmPin")]
    return sum(kib) << 10


def _walked(pid: int, proc: Path) -> Fact[dict[int, Row]]:
    resident = convert(text(proc / str(pid) / "statm"), lambda fields: int(fields.split()[1]))
    if isinstance(resident, Unknown):
        return resident
    if resident.value > WALKED:
        return Unknown(
            f"{resident.value:,} pages are resident: to walk more than {WALKED:,}"
            " would hold the process's memory lock for too long"
        )
    return numa_maps(pid, proc)


def _pages(parts: Iterable[Area], rows: Mapping[int, Row]) -> Pages:
    return Pages.sum(Pages(rows[area.start].pages) for area in parts if area.start in rows)


def _sampled(pid: int, private: list[Area], ask: Ask, random: np.random.Generator) -> Fact[Pages]:
    population = sum(area.pages for area in private)
    try:
        status = ask(pid, addresses_of(private, chosen(population, random)))
    except OSError as e:
        return Unknown("it has ended" if e.errno in _PROCESS_GONE else f"move_pages: {e.strerror}")
    return Known(counted(status, population), f"move_pages of {min(SAMPLE, population):,} pages")


def _policy(pid: int, first: Area, rows: Fact[dict[int, Row]], proc: Path) -> Fact[str]:
    """Of a segment, by its first area: a policy of shared memory holds for all who map it."""
    if isinstance(rows, Known):
        row = rows.value.get(first.start)
        return Known(row.policy, rows.source) if row else Unknown("it was mapped a moment ago")
    own = segment_policy(pid, first, proc)
    if value_of(own) != DEFAULT:
        return own
    return policy_of_thread(proc / str(pid) / "task" / str(pid))
