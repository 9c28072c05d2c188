"""
Which part of the workload may run on which CPU: the three generations of the system we model.

Affinity has three levels, as there: the group of all processes, each process, and each thread
inside the inference process. It decides where threads run, never where their memory is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

Cpus = frozenset[int]

SYSTEM_SHARE = 4
"""With more CPUs than this, the first one is left to the rest of the machine."""


class Variant(StrEnum):
    PLAIN = "plain"
    AFFINITY = "affinity"
    ISOLATED = "isolated"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pinning:
    """The CPUs of each part. Within the machine's own limits, plain means all of them."""

    group: Cpus
    samplers: Cpus
    inference_process: Cpus
    """Of every thread of the inference process that the two below do not name."""

    inference_thread: Cpus
    service_threads: Cpus
    neighbour: Cpus
    """Of the antagonist, which is not part of the group."""


def possible(variant: Variant, cpus: Set[int]) -> Variant:
    """The variant, or plain where it has too few CPUs."""
    alone = variant is Variant.ISOLATED and len(cpus) == 1
    return Variant.PLAIN if alone else variant


def pinning(variant: Variant, cpus: Set[int]) -> Pinning:
    """Of a variant that is possible on a machine with these CPUs."""
    place = {
        Variant.PLAIN: _everywhere,
        Variant.AFFINITY: _affinity,
        Variant.ISOLATED: _isolated,
    }[variant]
    return place(sorted(cpus))


def _everywhere(cpus: list[int]) -> Pinning:
    everywhere = frozenset(cpus)
    return Pinning(
        group=everywhere,
        samplers=everywhere,
        inference_process=everywhere,
        inference_thread=everywhere,
        service_threads=everywhere,
        neighbour=everywhere,
    )


def _affinity(cpus: list[int]) -> Pinning:
    """Halves of the group; a thread of its own CPU only where the process has a second one."""
    group = cpus[1:] if len(cpus) > SYSTEM_SHARE else cpus
    half = len(group) // 2
    process = group[half:]
    return Pinning(
        group=frozenset(group),
        samplers=frozenset(group[:half] or group),
        inference_process=frozenset(process),
        inference_thread=frozenset(process[-1:]),
        service_threads=frozenset(process[:-1] or process),
        neighbour=frozenset(cpus),
    )


def _isolated(cpus: list[int]) -> Pinning:
    """The inference thread alone on the last CPU, even the neighbour elsewhere."""
    rest = frozenset(cpus[:-1])
    return Pinning(
        group=frozenset(cpus),
        samplers=rest,
        inference_process=rest,
        inference_thread=frozenset(cpus[-1:]),
        service_threads=rest,
        neighbour=rest,
    )


@contextmanager
def pinned_to(cpus: Cpus) -> Iterator[None]:
    """Run the block on these CPUs. Processes and threads started in it inherit them."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
