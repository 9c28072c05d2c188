"""Pages of shared memory are told of those who touched them first, to the page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest

from tests.kernel import programs
from tests.kernel.harness import Program, Trace, kernel_side
from tracer.kernel.btf import Btf, wire
from tracer.kernel.hooks import plan
from tracer.kernel.memory_hooks import allocations
from tracer.kernel.trace import KernelTrace
from tracer.memory.first_touch import Toucher, first_touches

PAGES = 500
ROOM = wire().enum("limits")["MAX_TOUCHES"]


@pytest.fixture
def segment() -> Iterator[Path]:
    with NamedTemporaryFile(dir="/dev/shm", prefix="tailtrace-") as file:
        file.truncate(PAGES * os.sysconf("SC_PAGE_SIZE"))
        yield Path(file.name)


@pytest.fixture
def trace() -> Iterator[Trace]:
    """With what only machines of two nodes have."""
    with kernel_side():
        kernel = Btf.of_kernel()
        here = plan(kernel)
        added = tuple(dict.fromkeys((*here.programs, *allocations(kernel).programs)))
        here = replace(here, programs=added)
        with KernelTrace(here, tenant_slots=8, outlier_ns=10_000_000) as traced:
            yield Trace(traced)


def ran(trace: Trace | None, program: Path, *arguments: object) -> int:
    """The pid of a toucher that has done all it does."""
    it = Program(program, *arguments)
    if trace:
        trace.follow(it.pid)
    it.go()
    it.output()
    return it.pid


def test_each_page_is_told_of_the_first_that_touched_it(
    trace: Trace, segment: Path, tmp_path: Path
) -> None:
    toucher = programs.build("toucher", tmp_path)
    first = ran(trace, toucher, segment, 0, 300, "first")
    ran(None, toucher, segment, 300, 50, "nobody's")
    second = ran(trace, toucher, segment, 200, 300, "second")

    touches = trace.kernel.touches()
    about = segment.stat()
    identity = (os.major(about.st_dev), os.minor(about.st_dev)), about.st_ino
    node = touches["who"]["node"][0]
    assert first_touches(touches).keys() == {identity}
    assert first_touches(touches)[identity].by == (
        Toucher(first, first, "first", node, 300),
        Toucher(second, second, "second", node, 150),
    )
    assert trace.lost() == {}


def test_what_is_forgotten_is_told_no_more(trace: Trace, segment: Path, tmp_path: Path) -> None:
    ran(trace, programs.build("toucher", tmp_path), segment, 0, 300, "first")
    trace.kernel.forget_touches(trace.kernel.touches())

    assert len(trace.kernel.touches()) == 0


def test_touchers_beyond_the_room_for_them_are_counted_as_lost(
    trace: Trace, tmp_path: Path
) -> None:
    ran(trace, programs.build("many_touchers", tmp_path), ROOM + 50)

    assert len(trace.kernel.touches()) == ROOM
    assert trace.lost() == {"touches_full": 50}
