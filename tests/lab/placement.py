"""
Runs in a guest of two nodes: puts memory where it says, and writes what the tracer makes of it.

``exact``: pages by node of segments, by move_pages and by numa_maps. ``drift``: numastat's windows,
memory being allocated from another node in one of them alone. ``remote``: a program whose memory
is bound to the other node. ``queue``: rl_sampling, its queue on the other node than its threads,
then moved to theirs. ``balanced``: the same, moved by NUMA balancing. The command is called and not
run: an emulated Python takes seconds to start.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from tracer.cli import main
from tracer.config import Config
from tracer.host.facts import value_of
from tracer.memory.numastat import Drifts, numastat
from tracer.memory.process import memory_of
from tracer.memory.segment_policy import segment_policy
from tracer.memory.segments import segments
from tracer.memory.syscalls import nodes_of_pages
from tracer.targets.processes import Processes
from workloads.rl_sampling.placing import Place, bind, nodes, touch

MIB, HUGE = 1 << 20, 2 << 20
CPUS = nodes()
DISTURBED = 3
"""The window, of those of ``drift``, with remote allocations."""

REMOTE_MIB = 96
SMALL = (
    *("--variant", "affinity", "--hidden", "64", "--service-threads", "0"),
    *("--samplers", "policy-a=1,policy-b=1"),
)
ACTORS = 3
QUEUE = "/dev/shm/rl_sampling-"
BALANCED_WITHIN_S = 90.0


def segment(name: str, size: int, on_1: int = 0, flags: int = 0) -> mmap.mmap:
    """Shared memory of which the last ``on_1`` bytes are on node 1, and what is before on 0."""
    fd = os.memfd_create(name, flags)
    os.ftruncate(fd, size)
    memory = mmap.mmap(fd, size)
    os.close(fd)
    bind(memory, {0})
    if on_1:
        bind(memory, {1}, begin=size - on_1)
    touch(memory)
    return memory


def exact() -> dict[str, Any]:
    Path("/proc/sys/vm/nr_hugepages").write_text("4\n")
    kept = [
        segment("small", 3 * MIB, on_1=MIB),
        segment("sampled", 96 * MIB, on_1=32 * MIB),
        segment("huge", 2 * HUGE, on_1=HUGE, flags=os.MFD_HUGETLB),
    ]
    random = np.random.default_rng()
    told = value_of(memory_of(os.getpid(), nodes_of_pages, random))
    assert told is not None
    found, _ = segments({os.getpid(): told}, nodes_of_pages, random, most=len(kept))
    return {
        each.path.removeprefix("/memfd:").removesuffix(" (deleted)"): {
            "move_pages": each.pages.by_node,
            "numa_maps": told.touched[each.identity].by_node,
            "error": each.pages.error,
            "policy": value_of(each.policy),
            "kept_policy": value_of(segment_policy(os.getpid(), told.segments[each.identity][0])),
        }
        for each in found
    }


def drift() -> list[dict[str, float | None]]:
    """Of node 0. In every window 8 MiB come from it: for its own CPU, but in the disturbed one."""
    drifts, told = Drifts(), []
    drifts.add(value_of(numastat()) or {})
    for window in range(6):
        os.sched_setaffinity(0, CPUS[1 if window == DISTURBED else 0])
        segment("window", 8 * MIB).close()
        node = drifts.add(value_of(numastat()) or {})[0]
        told.append({"remote": value_of(node.remote.now), "change": value_of(node.remote.change)})
    return told


def remote() -> dict[str, Any]:
    """On CPUs of node 1 from its start, its memory bound to node 0."""
    code = (
        "import mmap; from workloads.rl_sampling.placing import bind, touch\n"
        f"memory = mmap.mmap(-1, {REMOTE_MIB * MIB}, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        "bind(memory, {0}); touch(memory); print(flush=True)\n"
        "while True: touch(memory)"
    )
    with on_node(1):
        program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert program.stdout and program.stdout.readline()
        return memory_command("--pid", str(program.pid))
    finally:
        program.kill()
        program.wait()


def queue() -> dict[str, Any]:
    with workload(Place.WRONG) as pid:
        wrong, text = memory_command(), tailtrace("memory")
        files = Path(f"/proc/{pid}/fd").iterdir()
        (queue,) = (file for file in files if "rl_sampling-" in str(file.readlink()))
        with queue.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as memory:
            memory[:: mmap.PAGESIZE]  # reads each page: mbind moves what is mapped
            bind(memory, {1}, move=True)
        return {"wrong": wrong, "text": text, "moved": memory_command()}


def balanced() -> list[dict[str, Any]]:
    """Looks at the queue, touched on node 0, until balancing has it where its threads run."""
    balancing = Path("/proc/sys/kernel/numa_balancing")
    balancing.write_text("0")
    with workload(Place.MOVED):
        told = [memory_command()]
        balancing.write_text("1")
        patience = time.monotonic() + BALANCED_WITHIN_S
        while misplaced(told[-1]) and time.monotonic() < patience:
            told.append(memory_command())
    return told


def misplaced(told: dict[str, Any]) -> bool:
    """Whether the queue is."""
    return any(finding["seen"].startswith(QUEUE) for finding in told["findings"])


@contextmanager
def on_node(node: int) -> Iterator[None]:
    """What is started in the block runs on this node's CPUs alone."""
    os.sched_setaffinity(0, CPUS[node])
    try:
        yield
    finally:
        os.sched_setaffinity(0, CPUS[0])


@contextmanager
def workload(place: Place) -> Iterator[int]:
    """Its pid. On CPUs of node 1 alone, from the first steps of all its actors on."""
    command = [sys.executable, "-m", "workloads.rl_sampling", *SMALL]
    with on_node(1):
        program = subprocess.Popen(
            [*command, "--queue", place, "--duration", "600"], stdout=subprocess.DEVNULL
        )
    try:
        processes, targets = Processes(Config()), set()
        while len(targets) < ACTORS:
            assert program.poll() is None
            time.sleep(0.2)
            targets |= {target.pid for target in processes.scan().new}
        yield program.pid
    finally:
        program.terminate()
        program.wait()


def memory_command(*arguments: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(tailtrace("memory", "--json", *arguments))
    return told


def tailtrace(*arguments: str) -> str:
    """What it prints."""
    with redirect_stdout(io.StringIO()) as printed:
        main(arguments)
    return printed.getvalue()


if __name__ == "__main__":
    print(json.dumps({part.__name__: part() for part in (exact, drift, remote, queue, balanced)}))
