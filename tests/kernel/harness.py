"""
Victims that write down what happened to them, and a trace of them to compare with.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tracer.errors import UnavailableError
from tracer.kernel.trace import KernelTrace
from tracer.model import Records
from tracer.selftest import victim as selftest
from tracer.selftest.observer import Observer

HERE = Path(__file__).parent

PRECISION = float(os.environ.get("TRUTH_PRECISION", "0.01"))
"""Share by which two accounts may differ. The lab's guests have coarser clocks (lab/vm.py)."""


Gaps = list[tuple[int, int]]
"""Begin and end, CLOCK_MONOTONIC ns, in order of time."""


def total_seconds(gaps: Gaps) -> float:
    return sum(end - begin for begin, end in gaps) / 1e9


def overlap(some: Gaps, others: Gaps) -> Gaps:
    """The time in both."""
    pairs = ((max(a, c), min(b, d)) for a, b in some for c, d in others)
    return [(begin, end) for begin, end in pairs if begin < end]


@contextmanager
def kernel_side() -> Iterator[None]:
    """Where it may not be loaded the test is skipped, or fails when KERNEL_TESTS=1 wants it run."""
    try:
        yield
    except UnavailableError as why:
        if os.environ.get("KERNEL_TESTS") == "1":
            raise
        pytest.skip(f"{why} (KERNEL_TESTS=1 turns this skip into a failure)")


class Program:
    """A process that says when it is ready, goes when told, and prints what it has to say."""

    def __init__(self, path: Path | str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [str(path), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n"

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def is_running(self, patience: float = 0.1) -> bool:
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            return True
        return False

    def output(self) -> str:
        """Wait for the end, which must be a good one."""
        out, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return out


class Victim(selftest.Victim):
    """A process of ``tests/kernel/victims.py``, which gives an account of itself."""

    command: ClassVar[list[str]] = [sys.executable, str(HERE / "victims.py")]
    _running: ClassVar[list[Victim]] = []

    def __init__(self, what: str, *arguments: object) -> None:
        super().__init__(what, *arguments)
        self._running.append(self)

    def is_working(self, patience: float = 0.1) -> bool:
        """Whether it has nothing to say yet: an account may not fit into a pipe unread."""
        return not select.select([self.process.stdout], [], [], patience)[0]

    def report(self, free: Callable[[], object] = lambda: None) -> Any:
        """What it saw. ``free`` is as for ``account``."""
        return self.account(free)["saw"]

    def long_gaps(self, free: Callable[[], object] = lambda: None) -> Gaps:
        """Of a victim that spins: when it did not, for a millisecond or more."""
        return [(begin, end) for begin, end in self.report(free) if end - begin >= 1_000_000]

    def seconds_without_cpu(self) -> float:
        """Of its work, by its own two clocks: wall time less CPU time."""
        return float(self.account()["waited_ns"] / 1e9)

    @classmethod
    def kill_all(cls) -> None:
        while cls._running:
            cls._running.pop().kill()


class Trace(Observer):
    """What the kernel side says about the processes that are followed, and their marked work."""

    def __init__(self, kernel: KernelTrace) -> None:
        super().__init__(kernel)
        self._outliers: list[Records] = []

    def follow(self, pid: int, page: int | None = None) -> int:
        return super().follow(pid, mark_page(pid) if page is None else page)

    def waits(self, tid: int) -> Records:
        """All deschedules in steps of a thread that lasted the 10 us from which each is told."""
        self.drain()
        everything = np.concatenate(self._outliers)
        return everything[(everything["tid"] == tid) & (everything["step"] > 0)]["wait"]

    def drain(self) -> None:
        super().drain()
        self._outliers.append(self.kernel.outliers())

    def work(self, tid: int) -> Records:
        """The pieces of what a victim did in its step, or steps, after the warm-up."""
        pieces = self.pieces(tid)
        return pieces[pieces["step"] > 1]

    def absent(self, tid: int) -> float:
        """Seconds of a victim's waits for a CPU in which that CPU was away itself."""
        return float(self.work(tid)["absent_ns"].sum() / 1e9)

    def lost(self) -> dict[str, int]:
        """
        What was lost of the books. It is no such loss not to know whom to blame, that the clocks
        of two CPUs are nanoseconds apart, or that a kernel keeps some switches to itself.
        """
        counts = self.kernel.lost()
        harmless = ("blame_overwritten", "blame_migrated", "clock_backwards", "switch_unseen")
        return {why: n for why, n in counts.items() if n and why not in harmless}

    def deschedules(self, index: int) -> int:
        """Intervals counted in the histograms of a tenant slot."""
        return int(self.kernel.histograms[index, :, :-1].sum())


def mark_page(pid: int) -> int:
    """The user address of the mark page of a process; 0 when it has none."""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if "/memfd:stepmark" in line:
            return int(line.split("-", 1)[0], 16)
    return 0
