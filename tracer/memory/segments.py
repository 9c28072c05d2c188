"""
Where shared segments are: pages by node of what several processes map.

A process knows only pages that it has touched itself, so each page of the sample is asked of one
process after the other until one of them knows.
"""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tracer.host.facts import Fact, Known
from tracer.memory.areas import Area, Identity, addresses_in
from tracer.memory.numa_maps import DEFAULT
from tracer.memory.pages import PAGE, Ask, Pages, chosen, counted
from tracer.memory.process import ProcessMemory

_MOST_ASKED = 16  # processes, the ones that map most of it first


@dataclass(frozen=True, slots=True)
class Segment:
    identity: Identity
    path: str
    """Its name in the address space: ``/dev/shm/queue``, ``/memfd:queue (deleted)``."""

    bytes: int
    """As far as it is mapped."""

    pids: tuple[int, ...]
    """Of those that were looked at, the ones that map it."""

    pages: Pages
    policy: Fact[str]


def segments(
    memories: Mapping[int, ProcessMemory], ask: Ask, random: np.random.Generator, most: int
) -> tuple[list[Segment], int]:
    """The largest ``most`` segments of processes by pid, and how many there are beside these."""
    users: dict[Identity, dict[int, tuple[Area, ...]]] = defaultdict(dict)
    for pid, memory in memories.items():
        for identity, parts in memory.segments.items():
            users[identity][pid] = parts
    order = sorted(users, key=lambda identity: -_end(users[identity]))
    found = [
        Segment(
            identity,
            next(iter(users[identity].values()))[0].path,
            _end(users[identity]) * PAGE,
            tuple(users[identity]),
            _pages(users[identity], ask, random) or _most_touched(identity, memories.values()),
            _policy([memories[pid].policies[identity] for pid in users[identity]]),
        )
        for identity in order[:most]
    ]
    return found, max(0, len(order) - most)


def _end(users: Mapping[int, Sequence[Area]]) -> int:
    """The page of the file behind the last one that is mapped."""
    areas = [area for parts in users.values() for area in parts]
    return max(area.offset // PAGE + area.pages for area in areas)


def _pages(users: Mapping[int, Sequence[Area]], ask: Ask, random: np.random.Generator) -> Pages:
    population = _end(users)
    positions = chosen(population, random)
    status = np.full(len(positions), -errno.ENOENT, np.int32)
    most_first = sorted(users, key=lambda pid: -sum(area.pages for area in users[pid]))
    for pid in most_first[:_MOST_ASKED]:
        unknown = np.flatnonzero(status < 0)
        mapped, addresses = addresses_in(users[pid], positions[unknown])
        if mapped.any():
            try:
                status[unknown[mapped]] = ask(pid, addresses[mapped])
            except OSError:  # ended since, or not to be looked at: the others may know
                continue
    return counted(status, population)


def _most_touched(identity: Identity, memories: Iterable[ProcessMemory]) -> Pages:
    """What one process knows of it: where move_pages is denied, that is all there is."""
    known = [memory.touched[identity] for memory in memories if identity in memory.touched]
    return max(known, key=lambda pages: pages.total, default=Pages({}))


def _policy(told: Sequence[Fact[str]]) -> Fact[str]:
    """A segment without a policy of its own shows each user that of its main thread."""
    known = [policy for policy in told if isinstance(policy, Known)]
    bound = [policy for policy in known if policy.value != DEFAULT]
    return next(iter([*bound, *known]), told[0])
