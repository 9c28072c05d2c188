"""Interrupts on a CPU, long enough that what runs there sees them (``bpf/interrupt.bpf.c``)."""

from __future__ import annotations

import os
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tracer.errors import UnavailableError
from tracer.kernel.btf import object_path
from tracer.kernel.libbpf import BpfObject

EACH_S, GAP_S, TIMES = 0.004, 0.004, 100
"""Long beside an interrupt's way in and out, which only the victim sees."""

_FIRST = bytes(4)


@contextmanager
def interrupting(kind: str, cpu: int) -> Iterator[Interrupts]:
    """
    Interrupts of a kind, ``irq`` or ``softirq``, from when they are started; none after the block.

    Raises UnavailableError when this machine has no CPU to interrupt another from, or when the
    kernel takes no such programs.
    """
    others = os.sched_getaffinity(0) - {cpu}
    if not others:
        raise UnavailableError(f"there is only CPU {cpu}: nobody could interrupt it")
    program = BpfObject(object_path("interrupt"))
    with ExitStack() as undo:
        undo.callback(program.close)
        program.load()
        interrupts = Interrupts(program, kind, cpu, others)
        undo.callback(interrupts.end)  # before the program that its thread runs is closed
        yield interrupts


class Interrupts:
    def __init__(self, program: BpfObject, kind: str, cpu: int, others: set[int]) -> None:
        self._program = program
        self._cpu = cpu
        self._others = others
        self._begin = self._hard if kind == "irq" else self._soft
        self._thread: threading.Thread | None = None
        self._enough = threading.Event()

    def start(self, victim: int) -> None:
        """:param victim: the process whose time is to be counted"""
        wanted = struct.pack("=4Q", int(EACH_S * 1e9), int(GAP_S * 1e9), TIMES, victim)
        self._thread = threading.Thread(target=self._begin, args=(wanted,))
        self._thread.start()

    def end(self) -> None:
        """Nobody begins one any more; soft ones go on until the program is closed."""
        self._enough.set()
        if self._thread:
            self._thread.join()

    def taken(self) -> float:
        """
        Seconds that they took of the victim, by their own clock, now that it has done its work.
        """
        self.end()
        return int.from_bytes(self._program.lookup("taken_ns", _FIRST), sys.byteorder) / 1e9

    def _hard(self, wanted: bytes) -> None:
        os.sched_setaffinity(0, self._others)
        for _ in range(TIMES):
            if self._enough.wait(GAP_S):
                return
            self._program.run_once("interrupt", wanted, self._cpu)

    def _soft(self, wanted: bytes) -> None:
        """They go on by themselves."""
        os.sched_setaffinity(0, {self._cpu})
        self._program.run_once("interrupt_softly", wanted)
