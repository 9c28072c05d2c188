"""Pages by NUMA node, counted one by one or estimated from a random sample."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PAGE = os.sysconf("SC_PAGE_SIZE")

SAMPLE = 4096
"""Pages asked for at most: any share is then within 1.6 % of the truth, 19 times of 20."""

Addresses = NDArray[np.uint64]
Ask = Callable[[int, Addresses], NDArray[np.int32]]
"""``syscalls.nodes_of_pages``, or what stands for it in a test."""


@dataclass(frozen=True, slots=True)
class Pages:
    """In units of PAGE, whatever size the pages have that they lie in."""

    by_node: Mapping[int, int]
    """Those that are in memory, and known to the processes that were asked."""

    error: float = 0.0
    """By how much a node's share may be off, 19 times of 20; 0 when each page was counted."""

    def __bool__(self) -> bool:
        return bool(self.by_node)

    @property
    def total(self) -> int:
        return sum(self.by_node.values())

    @property
    def shares(self) -> dict[int, float]:
        """By node; empty when no page is in memory."""
        return shares(self.by_node)

    @classmethod
    def sum(cls, parts: Iterable[Pages]) -> Pages:
        several = list(parts)
        by_node = {node: int(n) for node, n in add_up(part.by_node for part in several).items()}
        off = sum(part.error * part.total for part in several)
        return cls(by_node, off / max(1, sum(by_node.values())))


def add_up(parts: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """The sum by node."""
    found: dict[int, float] = defaultdict(float)
    for part in parts:
        for node, value in part.items():
            found[node] += value
    return dict(found)


def shares(by_node: Mapping[int, float]) -> dict[int, float]:
    """Each node's part of the whole; empty where there is no whole."""
    whole = sum(by_node.values())
    return {node: n / whole for node, n in sorted(by_node.items())} if whole else {}


def mismatch(runs: Mapping[int, float], pages: Mapping[int, float]) -> float | None:
    """
    Half the sum of |share of runtime - share of pages| over nodes: 0 when memory is where threads
    run, 1 when none of it is. None when nothing ran, or no page is in memory.
    """
    on, of = shares(runs), shares(pages)
    if not on or not of:
        return None
    return sum(abs(on.get(node, 0.0) - of.get(node, 0.0)) for node in {*on, *of}) / 2


def chosen(population: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Positions of at most SAMPLE pages out of so many, all of them when there are no more."""
    if population <= SAMPLE:
        return np.arange(population)
    return np.sort(random.choice(population, SAMPLE, replace=False, shuffle=False))


def counted(status: NDArray[np.int32], population: int) -> Pages:
    """
    What the nodes of a sample tell of all the pages it was drawn from.

    The error is that of a share of one half, which is the largest: 1.96 standard deviations of a
    sample without replacement (Cochran, Sampling Techniques, section 3.2).
    """
    nodes, counts = np.unique(status[status >= 0], return_counts=True)
    known, scale = int(counts.sum()), population / max(1, len(status))
    present = round(known * scale)
    left_out = max(0, present - known) / max(1, present - 1)
    return Pages(
        {int(node): round(n * scale) for node, n in zip(nodes, counts, strict=True)},
        0.98 / math.sqrt(known) * math.sqrt(left_out) if known else 0.0,
    )
