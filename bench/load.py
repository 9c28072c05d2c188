"""The load, ``load.c``, compiled and running; and what the kernel counted of its threads."""

from __future__ import annotations

import subprocess
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


@dataclass(frozen=True, slots=True)
class Usage:
    """Of all threads of a process that live, since they began."""

    switches: int
    cpu_ns: int

    def __sub__(self, before: Usage) -> Usage:
        return Usage(self.switches - before.switches, self.cpu_ns - before.cpu_ns)

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.switches + other.switches, self.cpu_ns + other.cpu_ns)


def usage(pid: int, proc: Path = Path("/proc")) -> Usage:
    """From ``schedstat`` and the ``ctxt_switches`` lines of ``status``, proc(5)."""
    switches = cpu_ns = 0
    for task in (proc / str(pid) / "task").iterdir():
        lines = (task / "status").read_text().splitlines()
        switches += sum(int(line.split()[1]) for line in lines if "ctxt_switches:" in line)
        cpu_ns += int((task / "schedstat").read_text().split()[0])
    return Usage(switches, cpu_ns)


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
