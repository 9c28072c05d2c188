"""A made machine of two nodes with two CPUs each, whose processes have memory where a test says."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tracer.host.facts import Known
from tracer.host.topology import Node
from tracer.memory.pages import PAGE
from tracer.memory.watch import Watch
from tracer.model import Target

NODES = (
    Node(0, frozenset({0, 1}), Known(1 << 30)),
    Node(1, frozenset({2, 3}), Known(1 << 30)),
)
SHM_DEVICE = "00:1a"


@dataclass(frozen=True, kw_only=True)
class Piece:
    """An area of an address space, and the node of each of its pages; -1: not touched."""

    start: int
    nodes: Sequence[int]
    path: str = ""
    access: str = "rw-p"
    inode: int = 0
    offset_pages: int = 0
    policy: str = "default"

    @property
    def maps_line(self) -> str:
        end, device = self.start + len(self.nodes) * PAGE, SHM_DEVICE if self.inode else "00:00"
        offset = self.offset_pages * PAGE
        fields = f"{self.start:x}-{end:x} {self.access} {offset:08x} {device} {self.inode}"
        return f"{fields}    {self.path}".rstrip()

    @property
    def numa_line(self) -> str:
        counts = {node: list(self.nodes).count(node) for node in sorted({*self.nodes} - {-1})}
        pages = " ".join(f"N{node}={n}" for node, n in counts.items())
        return f"{self.start:x} {self.policy} anon=1 {pages} kernelpagesize_kB={PAGE // 1024}"


def queue(nodes: Sequence[int], start: int = 0x7F0000000000, **more: object) -> Piece:
    """A shared segment of which a process has touched what is not -1."""
    return Piece(start=start, nodes=nodes, path="/dev/shm/queue", access="rw-s", inode=77, **more)


class NumaMachine:
    def __init__(self, directory: Path) -> None:
        self.proc, self.sys = directory / "proc", directory / "sys"
        self.asked: list[tuple[int, int]] = []
        """Process, and pages asked for, of each call."""

        self._pieces: dict[int, list[Piece]] = {}
        self.numastat(0, local=0, other=0)
        self.numastat(1, local=0, other=0)

    def numastat(self, node: int, *, local: int, other: int, foreign: int = 0) -> None:
        hit = local + other
        counters = {"numa_hit": hit, "numa_foreign": foreign, "local_node": local}
        counters |= {"other_node": other}
        text = "".join(f"{name} {value}\n" for name, value in counters.items())
        _write(self.sys / f"devices/system/node/node{node}/numastat", text)

    def process(self, pid: int, *pieces: Piece, resident: int | None = None) -> Target:
        """One that has never run; ``resident`` is what it says to have, in pages."""
        directory = self.proc / str(pid)
        has = sum(node >= 0 for piece in pieces for node in piece.nodes)
        _write(directory / "statm", f"9999 {has if resident is None else resident} 0 0 0 0 0")
        _write(directory / "maps", "".join(f"{piece.maps_line}\n" for piece in pieces))
        _write(directory / "numa_maps", "".join(f"{piece.numa_line}\n" for piece in pieces))
        mount = "25 30 0:26 / /dev/shm rw,nosuid - tmpfs tmpfs rw\n"
        _write(directory / "mountinfo", f"30 1 8:1 / / rw - ext4 /dev/sda1 rw\n{mount}")
        self._pieces[pid] = list(pieces)
        self.thread(pid, pid, cpu=0, ticks=0)
        return Target(1, pid, 0, f"engine-{pid}", "chat")

    def thread(
        self,
        pid: int,
        tid: int,
        *,
        cpu: int,
        ticks: int,
        cpus: str = "0-3",
        policy: str = "default",
    ) -> None:
        fields = ["0"] * 50  # from field 3 of proc_pid_stat(5) on
        fields[11], fields[36] = str(ticks), str(cpu)
        directory = self.proc / str(pid) / "task" / str(tid)
        _write(directory / "stat", f"{tid} (a) b) {' '.join(fields)}\n")
        allowed = f"Cpus_allowed_list:\t{cpus}\nMems_allowed_list:\t0-1\n"
        _write(directory / "status", allowed)
        _write(directory / "numa_maps", f"400000 {policy} file=/bin/engine mapped=1 N0=1\n")

    def watch(self, clock: Callable[[], float], window: float = 60.0, pace: int = 0) -> Watch:
        """``pace`` 0: however long a look takes here, the next is not held up."""
        return Watch(
            *(NODES, window, 32),
            pace=pace,
            ask=self.ask,
            proc=self.proc,
            sys=self.sys,
            clock=clock,
        )

    def ask(self, pid: int, addresses: np.ndarray) -> np.ndarray:
        """move_pages(2) in query mode."""
        self.asked.append((pid, len(addresses)))
        if pid not in self._pieces:
            raise OSError(errno.ESRCH, "No such process")
        return np.array([self._node_at(pid, int(a)) for a in addresses], np.int32)

    def _node_at(self, pid: int, address: int) -> int:
        for piece in self._pieces[pid]:
            page = (address - piece.start) // PAGE
            if 0 <= page < len(piece.nodes):
                node = piece.nodes[page]
                return node if node >= 0 else -errno.ENOENT
        return -errno.EFAULT


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
