"""What it costs to see where a process's memory is, and for how long its memory lock is held."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import psutil

from bench.spread import Spread
from bench.table import Row, Section
from tracer.host.facts import Known, value_of
from tracer.memory.areas import addresses_of, areas
from tracer.memory.pages import PAGE
from tracer.memory.process import WALKED, memory_of
from tracer.memory.syscalls import nodes_of_pages

GIB = 1 << 30
_WHOLE = WALKED * PAGE * 3 // 4  # the interpreter's own pages count, too
_SAMPLED, _LARGEST = GIB, 8 * GIB
_FITS = 0.25  # of what is available
_WANTED = 50_000_000_000
_AT_ONCE = 16  # pages under one hold of move_pages: DO_PAGES_STAT_CHUNK_NR of mm/migrate.c
_METHOD = (
    "One look at the memory of a process that has touched an area of so much in pages of 4 KiB: "
    "its list of areas, then every page by `numa_maps`, or of a larger process 4,096 pages at "
    "random by `move_pages`, which takes the process's memory lock for 16 of them at a time. "
    f"For {_WANTED / 1e9:.0f} GB, which does not fit here, a straight line: through both sampled "
    "processes, and through `numa_maps` of the small one. The agent rests a thousand times as long "
    "as a look took."
)
_PROGRAM = """
import mmap, sys
memory = mmap.mmap(-1, int(sys.argv[1]), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_NOHUGEPAGE)
for at in range(0, len(memory), mmap.PAGESIZE):
    memory[at] = 1
print(flush=True)
input()
"""


def measure(rounds: int, say: Callable[[str], None]) -> Section:
    largest = int(min(_LARGEST, _FITS * psutil.virtual_memory().available))
    say(f"placement: looks at up to {largest / GIB:.1f} GiB")
    with touched(_WHOLE) as pid:
        whole = looks(pid, rounds)
    with touched(_SAMPLED) as pid:
        sampled = looks(pid, rounds)
    with touched(largest) as pid:
        large, hold = looks(pid, rounds), holds(pid, rounds)
    slope = (np.median(large) - np.median(sampled)) / (largest - _SAMPLED)
    by_line = float(np.median(large) + max(0.0, slope) * (_WANTED - largest))
    walked = float(np.median(whole)) * _WANTED / _WHOLE
    wanted = f"{_WANTED / 1e9:.0f} GB"
    return Section(
        "Where memory is",
        _METHOD,
        [
            Row(f"{_WHOLE / GIB:.2f} GiB, each page", "ms", Spread.quartiles(whole)),
            Row(f"{_SAMPLED / GIB:.0f} GiB, a sample", "ms", Spread.quartiles(sampled)),
            Row(f"{largest / GIB:.1f} GiB, a sample", "ms", Spread.quartiles(large)),
            Row("one hold of the lock for a sample", "us", Spread.quartiles(hold)),
            Row(f"{wanted}, a sample, extrapolated", "ms", Spread.exactly(by_line)),
            Row(f"{wanted}, each page, never done, extrapolated", "ms", Spread.exactly(walked)),
        ],
    )


@contextmanager
def touched(size: int) -> Iterator[int]:
    """The pid of a process that has touched so many bytes."""
    command = [sys.executable, "-c", _PROGRAM, str(size)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdout
        process.stdout.readline()
        yield process.pid
        process.kill()


def looks(pid: int, rounds: int) -> Sequence[float]:
    """Milliseconds that each took."""
    random, times = np.random.default_rng(0), []
    for _ in range(rounds):
        began = time.perf_counter()
        told = value_of(memory_of(pid, nodes_of_pages, random))
        times.append((time.perf_counter() - began) * 1e3)
        assert told and isinstance(told.private, Known)
    return times


def holds(pid: int, rounds: int) -> Sequence[float]:
    """Microseconds of a question for as many pages as are asked for under one hold, no less."""
    largest = max(value_of(areas(pid)) or (), key=lambda area: area.pages)
    random, times = np.random.default_rng(0), []
    for _ in range(rounds):
        asked = addresses_of([largest], random.integers(0, largest.pages, _AT_ONCE))
        began = time.perf_counter()
        nodes_of_pages(pid, asked)
        times.append((time.perf_counter() - began) * 1e6)
    return times
