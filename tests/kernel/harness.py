"""
Victims that write down what happened to them, and a trace of them to compare with.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tracer.kernel.btf import wire
from tracer.kernel.trace import KernelTrace
from tracer.model import Records

CAUSES = wire().names("cause", "CAUSE_")
HERE = Path(__file__).parent

Gaps = list[tuple[int, int]]
"""Begin and end, CLOCK_MONOTONIC ns, in order of time."""


def total_seconds(gaps: Gaps) -> float:
    return sum(end - begin for begin, end in gaps) / 1e9


class Program:
    """A process that says when it is ready, goes when told, and prints what it has to say."""

    _running: ClassVar[list[subprocess.Popen[str]]] = []

    def __init__(self, path: Path | str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [str(path), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._running.append(self.process)
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

    @classmethod
    def kill_all(cls) -> None:
        for process in cls._running:
            process.kill()
            process.wait()
        cls._running.clear()


class Victim(Program):
    """A process of ``tests/kernel/victims.py``, which gives an account of itself."""

    def __init__(self, what: str, *arguments: object) -> None:
        super().__init__(sys.executable, HERE / "victims.py", what, *arguments)

    def report(self) -> Any:
        return json.loads(self.output())

    def long_gaps(self) -> Gaps:
        """Of a victim that spins: when it did not, for a millisecond or more."""
        return [(begin, end) for begin, end in self.report() if end - begin >= 1_000_000]


class Trace:
    """What the kernel side says about the processes that are followed."""

    def __init__(self, kernel: KernelTrace) -> None:
        self.kernel = kernel
        self._pieces: list[Records] = []
        self._outliers: list[Records] = []
        self._next_index = 1

    def follow(self, pid: int) -> int:
        """Returns the index of the process, which is its tenant slot, too."""
        index, self._next_index = self._next_index, self._next_index + 1
        row = self.kernel.processes[index]
        row["tgid"], row["page"], row["tenant"] = pid, mark_page(pid), index
        row["tenant_slot"] = index
        self.kernel.follow(index, pid)
        self.kernel.tag_threads()
        return index

    def pieces(self, tid: int | None = None) -> Records:
        """All pieces so far, of one thread or of all."""
        self.drain()
        everything = np.concatenate(self._pieces)
        return everything if tid is None else everything[everything["tid"] == tid]

    def waits(self, tid: int) -> Records:
        """All deschedules of a thread that lasted at least the 10 us from which each is told."""
        self.drain()
        everything = np.concatenate(self._outliers)
        return everything[everything["tid"] == tid]["wait"]

    def drain(self) -> None:
        """Make room in the rings. Call it while a program runs that has much to tell."""
        self._pieces.append(self.kernel.pieces())
        self._outliers.append(self.kernel.outliers())

    def work(self, tid: int) -> Records:
        """The pieces of what a victim did in its step, or steps, after the warm-up."""
        pieces = self.pieces(tid)
        return pieces[pieces["step"] > 1]

    def seconds(self, tid: int) -> dict[str, float]:
        """Seconds per cause of a victim's work."""
        total = self.work(tid)["ns"].sum(axis=0) / 1e9
        return dict(zip(CAUSES, total.tolist(), strict=True))

    def waits_in(self, tid: int, gaps: Gaps) -> dict[str, float]:
        """Seconds per cause of the deschedules that fell into these gaps of a thread."""
        waits = self.waits(tid)
        begin, end = np.array(gaps, np.uint64).reshape(-1, 2).T
        gap = np.searchsorted(begin, waits["at_ns"]) - 1  # the last that began before it
        waits = waits[(gap >= 0) & (waits["at_ns"] <= end[gap])]
        total = np.bincount(waits["cause"], waits["ns"], len(CAUSES)) / 1e9
        return dict(zip(CAUSES, total.tolist(), strict=True))

    def blame(self, tid: int) -> dict[int, float]:
        """Seconds per thread that ran while this one wanted the CPU; 0 stands for the rest."""
        pieces = self.work(tid)
        seconds = {0: pieces["blame_rest_ns"].sum() / 1e9}
        for aggressor in pieces["aggressors"].ravel():
            who = int(aggressor["who"]["tid"])
            seconds[who] = seconds.get(who, 0) + aggressor["ns"] / 1e9
        return seconds

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
