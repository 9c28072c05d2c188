"""
The kernel side, loaded and attached: what the agent tells it and what it gets from it.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracer.host.facts import parse_cpus
from tracer.kernel import libbpf
from tracer.kernel.btf import Btf, object_path, wire
from tracer.kernel.hooks import Plan
from tracer.kernel.ring import Ring
from tracer.model import Records

_POSSIBLE_CPUS = Path("/sys/devices/system/cpu/possible")  # numbers, which may have gaps
_PIECES_RING = 1 << 22  # bytes; as bpf/maps.bpf.h declares them
_OUTLIERS_RING = 1 << 19
_STALLS_RING = 1 << 20


class KernelTrace:
    """
    Begins to load at once, in a thread. A context manager: waits for that and attaches on entry,
    all or nothing; on exit nothing is left behind.

    Raises UnavailableError when the kernel refuses a program or the privileges do not suffice.
    """

    def __init__(
        self,
        plan: Plan,
        tenant_slots: int,
        outlier_ns: int,
        *,
        stall_ns: int = 1_000_000,
        probe_hz: int = 0,
    ) -> None:
        """
        :param outlier_ns: a single deschedule of at least this long is reported by itself
        :param stall_ns: a hard timer that expires so late tells of a stall
        :param probe_hz: how often a timer of our own expires on each CPU; 0: none does
        """
        self.plan, self._probe_hz = plan, probe_hz
        self._probes: list[int] = []
        limits = wire().enum("limits")
        self._histograms_shape = (tenant_slots, limits["HIST_CAUSES"], limits["HIST_STRIDE"])
        self._object = libbpf.BpfObject(object_path(plan.stem))
        self._object.keep_programs(plan.programs)
        for program, function in plan.functions.items():
            self._object.trace_function(program, function)
        self._object.resize_map("histograms", int(np.prod(self._histograms_shape)))
        self._cpus = 1 + max(parse_cpus(_POSSIBLE_CPUS.read_text()))
        self._object.resize_map("cpus", self._cpus)
        self._object.resize_map("pulses", self._cpus)
        self._set_constants({**plan.constants, "outlier_ns": outlier_ns, "stall_ns": stall_ns})
        self._object.begin_loading()

    def _set_constants(self, constants: Mapping[str, int | list[int]]) -> None:
        data = self._object.constants()
        for name, (offset, dtype) in Btf(self._object.btf).variables(".rodata").items():
            if name in constants:
                value = np.zeros(1, dtype)
                value[0] = constants[name]
                data[offset : offset + dtype.itemsize] = value.tobytes()

    def __enter__(self) -> KernelTrace:
        with ExitStack() as undo:
            undo.callback(self._close)
            self._object.finish_loading()
            self._object.attach(self.plan.programs)
            self._map()
            self._start_probes()
            undo.pop_all()
        return self

    def _map(self) -> None:
        """Map what is shared with the kernel side."""
        self._pieces = self._ring("pieces", _PIECES_RING, "piece")
        self._outliers = self._ring("outliers", _OUTLIERS_RING, "outlier")
        self._stalls = self._ring("stalls", _STALLS_RING, "stall")
        fd = self._object.map_fd("pulses")
        self.pulses: Records = _shared(fd, wire().dtype("pulse"), self._cpus)
        """(CPUs,) ``struct pulse``, shared, cumulative."""

        processes, fd = wire().enum("limits")["MAX_PROCESSES"], self._object.map_fd("processes")
        self.processes: Records = _shared(fd, wire().dtype("process"), processes)
        """(MAX_PROCESSES,) ``struct process``, shared with the kernel side."""
        cells = int(np.prod(self._histograms_shape))
        fd = self._object.map_fd("histograms")
        table = _shared(fd, np.dtype(np.uint64), cells, mmap.PROT_READ)
        self.histograms: NDArray[np.uint64] = table.reshape(self._histograms_shape)
        """(tenant slots, deschedule causes, buckets and the sum in ns), shared, cumulative."""
        variables = Btf(self._object.btf).variables(".bss")
        page = _shared(self._object.section_fd(".bss"), np.dtype(np.uint8), mmap.PAGESIZE)
        self._lost, self._tracked = (
            page[at : at + dtype.itemsize].view(np.uint64)
            for at, dtype in (variables["lost"], variables["tracked"])
        )

    def _start_probes(self) -> None:
        if not self._probe_hz:
            return
        for cpu in parse_cpus(Path("/sys/devices/system/cpu/online").read_text()):
            self._probes.append(libbpf.expire_regularly(cpu, 1_000_000_000 // self._probe_hz))

    def _ring(self, name: str, size: int, record: str) -> Ring:
        return Ring(self._object.map_fd(name), size, wire().dtype(record))

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        while self._probes:
            os.close(self._probes.pop())
        self._object.close()

    def follow(self, index: int, tgid: int) -> None:
        """Track the threads of a process from the next :meth:`tag_threads` on."""
        self._object.update("targets", struct.pack("=I", tgid), struct.pack("=I", index))

    def forget(self, tgid: int) -> None:
        self._object.delete("targets", struct.pack("=I", tgid))

    def tag_threads(self) -> None:
        """Let the kernel walk its threads and compare them with the targets: 0.1 ms or so."""
        self._object.run_iterator("tag_threads")

    def pieces(self) -> Records:
        """New pieces of ledgers (``struct piece``), in the order of their emission per thread."""
        return self._pieces.drain()

    def outliers(self) -> Records:
        """New single long deschedules (``struct outlier``)."""
        return self._outliers.drain()

    def stalls(self) -> Records:
        """New stalls of single CPUs (``struct stall``), in the order in which they ended."""
        return self._stalls.drain()

    def touches(self) -> Records:
        """
        (n,) who got how many new pages of which shared segment: ``who`` is ``struct toucher``,
        ``got`` is ``struct touched``, cumulative.
        """
        keys, values = self._object.entries("touches")
        who = np.frombuffer(keys, wire().dtype("toucher"))
        got = np.frombuffer(values, wire().dtype("touched"))
        found = np.empty(len(who), [("who", who.dtype), ("got", got.dtype)])
        found["who"], found["got"] = who, got
        return found

    def forget_touches(self, touches: Records) -> None:
        for who in touches["who"]:
            self._object.delete("touches", who.tobytes())

    @property
    def fill(self) -> float:
        """How full the fullest ring is, 0 to 1."""
        return max(self._pieces.fill, self._outliers.fill, self._stalls.fill)

    def lost(self) -> dict[str, int]:
        """What the kernel side could not count, by reason, since load."""
        return dict(zip(wire().names("lost", "LOST_"), self._lost.tolist(), strict=True))

    def tracked_threads(self) -> int:
        return int(self._tracked[0])

    def waiting_threads(self) -> int:
        """Tracked threads that wait for a CPU at this moment."""
        cpus = (self._object.lookup("cpus", struct.pack("=I", i)) for i in range(self._cpus))
        return sum(int(struct.unpack_from("=I", cpu)[0]) for cpu in cpus)

    def run_times(self) -> dict[str, tuple[int, int]]:
        """Program -> (ns, runs) while statistics are on (``libbpf.count_run_time``)."""
        return {
            name: (int(info["run_time_ns"]), int(info["run_cnt"]))
            for name, info in self._infos().items()
        }

    def verified_instructions(self) -> dict[str, int]:
        """Program -> instructions that the verifier went through to accept it."""
        return {name: int(info["verified_insns"]) for name, info in self._infos().items()}

    def _infos(self) -> dict[str, np.void]:
        """``struct bpf_prog_info`` of each program."""
        dtype = self._info_dtype
        return {
            name: np.frombuffer(self._object.program_info(name, dtype.itemsize), dtype)[0]
            for name in self.plan.programs
        }

    @cached_property
    def _info_dtype(self) -> np.dtype[np.void]:
        return Btf.of_kernel().dtype("bpf_prog_info")


def _shared(
    fd: int,
    dtype: np.dtype[Any],
    entries: int,
    access: int = mmap.PROT_READ | mmap.PROT_WRITE,
) -> NDArray[Any]:
    """The entries of a mappable map, as the kernel side sees them."""
    size = -(-entries * dtype.itemsize // mmap.PAGESIZE) * mmap.PAGESIZE
    return np.frombuffer(mmap.mmap(fd, size, mmap.MAP_SHARED, access), dtype, entries)
