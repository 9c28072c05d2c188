"""
Who touched the pages of a shared segment first, as far as that was seen.

A page without a policy lies on the node of the CPU whose thread touched it first. The kernel side
counts the pages that traced threads get in page faults; what was touched before, by processes that
are no targets, or by the kernel itself is not among them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tracer.host.facts import Fact, Known, Unknown
from tracer.memory.areas import Identity
from tracer.model import Records

_MINOR = 20  # bits of a device's minor number in the kernel, include/linux/kdev_t.h
_NONE_SEEN = Unknown("none of its pages was touched first by a traced thread since tracing began")


@dataclass(frozen=True, slots=True)
class Toucher:
    pid: int
    tid: int
    name: str
    """The thread's."""

    node: int
    """Of the CPU that it was on."""

    pages: int


@dataclass(frozen=True, slots=True)
class FirstTouch:
    by: tuple[Toucher, ...]
    """The one with most pages first; a thread that changed nodes is one on each."""

    @property
    def pages(self) -> int:
        """That were seen, on which every share rests."""
        return sum(each.pages for each in self.by)

    @property
    def by_node(self) -> dict[int, int]:
        """Pages by the node that they were touched on."""
        found: Counter[int] = Counter()
        for each in self.by:
            found[each.node] += each.pages
        return dict(found)


FirstTouches = Mapping[Identity, FirstTouch]


def first_touches(touches: Records) -> FirstTouches:
    """By segment; ``touches`` is (n,) of ``KernelTrace.touches``."""
    most_first = touches[np.argsort(-touches["got"]["pages"].astype(np.int64))]
    found: dict[Identity, list[Toucher]] = defaultdict(list)
    for identity, (who, got) in zip(identities(most_first), most_first, strict=True):
        name = got["comm"].decode(errors="backslashreplace")
        thread = int(who["tgid"]), int(who["tid"]), name, int(who["node"])
        found[identity].append(Toucher(*thread, int(got["pages"])))
    return {identity: FirstTouch(tuple(by)) for identity, by in found.items()}


def identities(touches: Records) -> Iterator[Identity]:
    """Of the segments, as /proc/PID/maps names them."""
    for device, inode in touches["who"][["device", "inode"]].tolist():
        yield (device >> _MINOR, device & (1 << _MINOR) - 1), inode


def first_touch_of(identity: Identity, seen: Fact[FirstTouches]) -> Fact[FirstTouch]:
    if isinstance(seen, Unknown):
        return seen
    touch = seen.value.get(identity)
    return Known(touch, seen.source) if touch else _NONE_SEEN
