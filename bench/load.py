"""The load, ``load.c``, compiled and running; and what the kernel counted of its threads."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import stepmark
from tracer.errors import UnavailableError

_HERE = Path(__file__).parent
_INCLUDE = Path(stepmark.__file__).parent / "include"


@contextmanager
def compiled(stem: str) -> Iterator[Path]:
    """``bench/<stem>.c`` as a program that lasts as long as the context."""
    with TemporaryDirectory(prefix="tailtrace-bench-") as folder:
        program = Path(folder) / stem
        source = str(_HERE / f"{stem}.c")
        command = ["gcc", "-O2", "-std=gnu11", f"-I{_INCLUDE}", source, "-pthread"]
        command += ["-o", str(program)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise UnavailableError(f"bench/{stem}.c does not compile: {done.stderr.strip()}")
        yield program


@dataclass(frozen=True, slots=True)
class Shape:
    """What a load does, as ``load.c`` has it."""

    pairs: int = 1
    tenants: int = 1
    trips: int = 50
    hz: int = 0


def switches(pid: int, proc: Path = Path("/proc")) -> int:
    """Of all threads of a process that live, since they began: ``status``, proc(5)."""
    lines = (
        line
        for task in (proc / str(pid) / "task").iterdir()
        for line in (task / "status").read_text().splitlines()
    )
    return sum(int(line.split()[1]) for line in lines if "ctxt_switches:" in line)


def cpu_ns(pid: int) -> int:
    """Of all threads of a process, those that ended included: clock_getcpuclockid(3)."""
    return time.clock_gettime_ns(~pid << 3 | 2)


@contextmanager
def running(program: Path, shape: Shape, cpu: int | None = None) -> Iterator[int]:
    """The pid of a load under way, on all CPUs unless one is given."""
    arguments = map(str, (program, shape.pairs, shape.tenants, shape.trips, shape.hz))
    pinned = [] if cpu is None else ["taskset", "--cpu-list", str(cpu)]
    with subprocess.Popen(
        [*pinned, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                raise UnavailableError(f"the load {shape} did not start")
            yield process.pid
        finally:
            process.kill()


@contextmanager
def several(program: Path, shape: Shape, processes: int) -> Iterator[list[int]]:
    """The pids of as many loads of the same shape."""
    with ExitStack() as undo:
        yield [undo.enter_context(running(program, shape)) for _ in range(processes)]
