"""
Engines as real processes, and their mark pages read from outside, as a tracer does.
"""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest

from stepmark import page as layout

INCLUDE = Path(layout.__file__).with_name("include")
SLOT = struct.Struct("@QQQIIQQI12x")
DONE = struct.Struct(f"@QQQQIII4x{2 * layout.SHARES}IQ8x")
assert (SLOT.size, DONE.size) == (layout.SLOT_SIZE, layout.DONE_SIZE)

PRELUDE = """
import stepmark, sys
from stepmark import now_ns, queued, stage, step, tick, tock
def pause():
    print("paused", flush=True)
    sys.stdin.readline()
"""


@dataclass(frozen=True)
class Current:
    """A slot, with names for ids."""

    index: int
    whole: bool
    step: int
    since_ns: int
    kind: str
    tenant: str
    finished: int
    tid: int


@dataclass(frozen=True)
class Done:
    """A finished mark, with names for ids."""

    whole: bool
    number: int
    parent: int
    begin_ns: int
    end_ns: int
    what: int
    kind: str
    shares: dict[str, int]


def _target(descriptor: Path) -> str:
    """What it refers to; nothing when it was closed since it was listed."""
    try:
        return str(descriptor.readlink())
    except FileNotFoundError:
        return ""


class Reading:
    """The mark page of another process."""

    def __init__(self, pid: int) -> None:
        descriptors = Path(f"/proc/{pid}/fd")
        (self.fd,) = (fd for fd in descriptors.iterdir() if "memfd:stepmark" in _target(fd))
        with self.fd.open("rb") as file:
            self.bytes = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)

    def header(self, at: int, form: str = "I") -> int:
        (value,) = struct.unpack_from(form, self.bytes, at)
        return int(value)

    def lost(self) -> list[int]:
        """Slots, kinds, tenants, shares."""
        return list(struct.unpack_from("4Q", self.bytes, layout.AT_LOST_SLOTS_FULL))

    def kinds(self) -> list[str]:
        return self._names(layout.AT_KINDS, self.header(layout.AT_NR_KINDS))

    def tenants(self) -> list[str]:
        return self._names(layout.AT_TENANTS, self.header(layout.AT_NR_TENANTS))

    def _names(self, table: int, number: int) -> list[str]:
        at = [table + i * layout.NAME_LEN for i in range(number)]
        return [self.bytes[i : i + layout.NAME_LEN].rstrip(b"\0").decode() for i in at]

    def slots(self) -> list[Current]:
        """Those that a thread holds or held."""
        all_of_them = map(self.slot_at, range(layout.SLOTS))
        return [slot for slot in all_of_them if slot.tid]

    def slot_at(self, index: int) -> Current:
        seq, step, since, kind, tenant, seq_end, finished, tid = SLOT.unpack_from(
            self.bytes, layout.AT_SLOTS + index * layout.SLOT_SIZE
        )
        names = (self.kinds()[kind], self.tenants()[tenant])
        return Current(index, seq == seq_end, step, since, *names, finished, tid)

    def slot(self) -> Current:
        """The only one."""
        (only,) = self.slots()
        return only

    def kinds_marked(self, number: int, seconds: float = 60) -> set[str]:
        """
        Kinds of steps under way, read until there are so many, of an engine whose kinds name their
        tenant: a mark that is whole has the tenant that its kind names.
        """
        seen: set[str] = set()
        deadline = time.monotonic() + seconds
        while len(seen) < number and time.monotonic() < deadline:
            for slot in self.slots():
                # A mark that changed while it was read is not whole, whatever it says.
                if slot.whole and slot == self.slot_at(slot.index) and slot.step:
                    assert slot.kind.split()[1] == slot.tenant
                    seen.add(slot.kind)
        return seen

    def done(self, slot: Current | None = None) -> list[Done]:
        """The ring of a slot, or of the only one; oldest first."""
        slot = slot or self.slot()
        ring = layout.AT_RINGS + slot.index * layout.RING * layout.DONE_SIZE
        entries = range(max(0, slot.finished - layout.RING), slot.finished)
        found = [
            DONE.unpack_from(self.bytes, ring + i % layout.RING * layout.DONE_SIZE) for i in entries
        ]
        kinds, tenants = self.kinds(), self.tenants()
        return [_named(fields, kinds, tenants) for fields in found]


def _named(fields: tuple[int, ...], kinds: list[str], tenants: list[str]) -> Done:
    number, parent, begin, end, what, kind, nr, *pairs, number_end = fields
    shares = {tenants[pairs[2 * i]]: pairs[2 * i + 1] for i in range(nr)}
    return Done(number == number_end, number, parent, begin, end, what, kinds[kind], shares)


class Engine:
    """A process that marks, stopped at its next pause."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid
        self.said = self._until_pause()

    def go_on(self) -> list[str]:
        """Let it run to its next pause; what it printed meanwhile."""
        assert self.process.stdin
        print(file=self.process.stdin, flush=True)
        return self._until_pause()

    def _until_pause(self) -> list[str]:
        assert self.process.stdout
        said = []
        for line in self.process.stdout:
            if line == "paused\n":
                return said
            said.append(line.rstrip("\n"))
        pytest.fail(f"the engine ended with {self.process.wait()}: {said}")

    def page(self) -> Reading:
        return Reading(self.pid)


@pytest.fixture
def started() -> Iterator[Callable[..., Engine]]:
    """Starts a command as an engine, which ends with the test."""
    with ExitStack() as undo:

        def start(*command: str | Path) -> Engine:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            undo.enter_context(process)
            undo.callback(_kill_with_children, process.pid)
            return Engine(process)

        yield start


def _kill_with_children(session: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)


@pytest.fixture
def python(started: Callable[..., Engine]) -> Callable[[str], Engine]:
    """Runs code in an engine of its own, up to its end or first ``pause()``."""
    return lambda code: started(sys.executable, "-c", f"{PRELUDE}\n{code}\npause()")


@pytest.fixture
def reading() -> type[Reading]:
    """Reads the page of any process, by pid."""
    return Reading


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[..., Path]:
    """Compiles C, or C++ from sources named ``.cc``, without a warning."""

    def build(*flags: str, **sources: str) -> Path:
        files = []
        for name, text in sources.items():
            files.append(tmp_path / name.replace("_", "."))
            files[-1].write_text(text)
        objects = [_compile(file, flags) for file in files]
        program = tmp_path / "engine"
        subprocess.run(["g++", *flags, *objects, "-o", program, "-pthread"], check=True)
        return program

    return build


def _compile(source: Path, flags: tuple[str, ...]) -> Path:
    compiler, standard = ("g++", "c++17") if source.suffix == ".cc" else ("gcc", "gnu11")
    assert shutil.which(compiler), f"{compiler} is needed to test stepmark.h"
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", f"-std={standard}"]
    target = source.with_suffix(source.suffix + ".o")
    subprocess.run(
        [compiler, *strict, *flags, f"-I{INCLUDE}", "-c", source, "-o", target], check=True
    )
    return target
