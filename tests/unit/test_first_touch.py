"""Who touched a segment first: from the kernel's table to a segment's touchers, and to words."""

from __future__ import annotations

import numpy as np
import pytest

from tracer.agent import touches as agents
from tracer.agent.touches import Touches
from tracer.host.facts import Known, Unknown
from tracer.judge.misplaced import touchers_in_words
from tracer.kernel.btf import wire
from tracer.memory.first_touch import FirstTouch, Toucher, first_touch_of, first_touches
from tracer.model import Capability

MEMFD, DEV_SHM = ((0, 1), 2062), ((0, 27), 77)
WHO, GOT = wire().dtype("toucher"), wire().dtype("touched")


def table(*rows):
    """As ``KernelTrace.touches`` has it: (segment, pid, tid, comm, node, pages) each."""
    found = np.zeros(len(rows), [("who", WHO), ("got", GOT)])
    for row, (((major, minor), inode), pid, tid, comm, node, pages) in zip(
        found, rows, strict=True
    ):
        row["who"] = np.array((inode, major << 20 | minor, pid, tid, node), WHO)
        row["got"] = np.array((pages, comm), GOT)
    return found


class Kernel:
    """A kernel side that has counted this much."""

    def __init__(self, *rows, source="fentry", reason=""):
        told = Capability("first touch", source, reason)
        self.plan = type("Plan", (), {"capabilities": (told,)})
        self.counted = table(*rows)

    def touches(self):
        return self.counted

    def forget_touches(self, forgotten):
        self.counted = self.counted[~np.isin(self.counted["who"], forgotten["who"])]


def test_touchers_are_told_by_segment_most_pages_first():
    found = first_touches(
        table(
            (MEMFD, 7, 8, b"loader", 0, 25),
            (DEV_SHM, 9, 9, b"\xff\n", 0, 1),
            (MEMFD, 9, 9, b"sampler", 1, 75),
        )
    )

    assert found[MEMFD].by == (
        Toucher(9, 9, "sampler", 1, 75),
        Toucher(7, 8, "loader", 0, 25),
    )
    assert (found[MEMFD].pages, found[MEMFD].by_node) == (100, {1: 75, 0: 25})
    assert found[DEV_SHM].by[0].name == "\\xff\n"


def test_a_device_of_the_kernel_is_major_and_minor_as_in_maps():
    assert list(first_touches(table((((259, 65_537), 5), 7, 7, b"a", 0, 1)))) == [
        ((259, 65_537), 5)
    ]


def test_a_segment_of_which_nothing_was_seen_is_unknown_and_why():
    touch = FirstTouch((Toucher(7, 7, "a", 0, 1),))

    assert first_touch_of(MEMFD, Known({MEMFD: touch}, "fentry")) == Known(touch, "fentry")
    assert first_touch_of(DEV_SHM, Known({MEMFD: touch})) == Unknown(
        "none of its pages was touched first by a traced thread since tracing began"
    )
    assert first_touch_of(DEV_SHM, Unknown("one node visible")) == Unknown("one node visible")


def test_in_words_threads_of_a_pool_are_one_and_the_rest_a_number():
    by = [Toucher(7, 10 + n, f"loader-{n}", 0, 20) for n in range(3)]
    by += [Toucher(8, 8, "a\x1b", 1, 30), Toucher(9, 9, "b", 1, 9), Toucher(9, 9, "b", 0, 1)]

    assert touchers_in_words(FirstTouch(tuple(by))) == (
        "loader-* (pid 7) on node 0: 60 %, a\\x1b (pid 8) on node 1: 30 %, b (pid 9) on node 1: 9 %"
        " and 1 other of 100 pages seen"
    )


def test_where_it_cannot_be_traced_it_is_unknown_and_why():
    kernel = Kernel(source="none", reason="one node visible")

    assert Touches(kernel).seen((), ()) == Unknown("one node visible")


@pytest.mark.parametrize(("many", "kept"), [(2, {7, 8}), (3, {7, 8, 9})])
def test_what_is_of_no_use_is_forgotten_when_room_gets_scarce(monkeypatch, many, kept):
    monkeypatch.setattr(agents, "_MANY", many)
    kernel = Kernel(
        (MEMFD, 7, 7, b"gone, its segment mapped", 0, 1),
        (DEV_SHM, 8, 8, b"alive", 0, 1),
        (DEV_SHM, 9, 9, b"gone like its segment", 0, 1),
    )

    seen = Touches(kernel).seen({MEMFD}, {8})

    assert set(seen.value) == {MEMFD, DEV_SHM}
    assert set(kernel.counted["who"]["tgid"].tolist()) == kept
