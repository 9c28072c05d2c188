"""
One virtual machine, one command in it: boot, run as root, bring back status, output and files.

The guest sees this machine's files (writes go to an overlay that dies with it), so it has the same
interpreter, virtual environment and checkout.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import psutil

from lab.clock import ClockMap, read_guest_clock
from lab.emulator import CHECKOUT, SHAPES, check_programs, clock_address, command_line, search_path
from lab.errors import GuestError
from lab.kernels import Kernel

BOOT_TIMEOUT_S = 180.0
_POLL_S = 0.05
_DISK_BYTES = 256 << 20
_BOOTS = 3

TRUTH_PRECISION = 0.05
"""
Share by which a victim's account of itself and the kernel's may differ in a guest.

An emulated CPU needs 0.1-0.3 ms to take an interrupt and to switch threads, of which a victim's
own look at the clock sees all and a tracepoint a part: 1-3 % of what takes 10-20 ms.
"""


@dataclass(frozen=True)
class Outcome:
    """What a command left. ``files`` is the directory the guest knows as LAB_OUT."""

    status: int
    stdout: str
    stderr: str
    files: Path
    boot_seconds: float


class Guest:
    """A booted guest whose command has started."""

    def __init__(self, what: str, run: Path, process: subprocess.Popen[bytes]) -> None:
        self.what = what
        self.files = run / "out"
        self.boot_seconds = 0.0
        self._run = run
        self._process = process
        self._clock_port = socket.socket(socket.AF_UNIX)
        self._clock_port.settimeout(10)

    @property
    def emulator(self) -> psutil.Process:
        """The process whose threads are the virtual CPUs."""
        for process in psutil.Process(self._process.pid).children(recursive=True):
            if process.name().startswith("qemu-system"):
                return process
        raise GuestError(f"{self.what}: the emulator is gone", self._console)

    @property
    def cpu_threads(self) -> dict[int, int]:
        """The host's thread id of each virtual CPU."""
        names = {
            int(comm.parent.name): comm.read_text()
            for comm in Path(f"/proc/{self.emulator.pid}/task").glob("*/comm")
        }
        # Named "CPU 3/TCG" by the emulator's debug-threads option.
        return {int(n[4:].split("/")[0]): t for t, n in names.items() if n.startswith("CPU ")}

    def read_clock(self) -> ClockMap:
        """This machine's CLOCK_MONOTONIC to the guest's, as of now, while the command runs."""
        try:
            return read_guest_clock(self._clock_port)
        except (ConnectionError, TimeoutError) as error:
            raise GuestError(
                f"{self.what}: no answer for the clock: {error}", self._console
            ) from error

    def wait_for_file(self, name: str, timeout_s: float = 60.0) -> Path:
        """A file that the command creates in LAB_OUT, for instance to say that it is ready."""
        path = self.files / name
        self._wait_until(path.exists, f"no {name} in LAB_OUT", timeout_s)
        return path

    def wait(self, timeout_s: float = 600.0, echo: bool = False) -> Outcome:
        """Until the command ends; ``echo`` passes its output on while it runs."""
        with ExitStack() as files:
            echoed = self._echoed(files) if echo else {}

            def ended() -> bool:
                ended = (self._run / "status").exists()
                _pass_on(echoed)
                return ended

            self._wait_until(ended, "the command did not end", timeout_s)
        return Outcome(
            status=int((self._run / "status").read_text()),
            stdout=(self._run / "stdout").read_text(errors="replace"),
            stderr=(self._run / "stderr").read_text(errors="replace"),
            files=self.files,
            boot_seconds=self.boot_seconds,
        )

    def come_up(self) -> None:
        """Until the command has started inside. Raises GuestError otherwise."""
        begin = time.monotonic()
        self._wait_until(self._connected, "the emulator did not start", BOOT_TIMEOUT_S)
        self._wait_until((self._run / "started").exists, "it did not come up", BOOT_TIMEOUT_S)
        self.boot_seconds = time.monotonic() - begin

    def end(self) -> None:
        """Kills the emulator and everything else that the boot started, and sees them gone."""
        try:
            inside = psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            inside = []  # the guardian ended, and with it all it guarded
        self._process.kill()
        self._process.wait()
        self._clock_port.close()
        psutil.wait_procs(inside, timeout=10)

    @property
    def panicked(self) -> bool:
        return b"Kernel panic" in self._console.read_bytes()

    @property
    def _console(self) -> Path:
        return self._run / "console.log"

    def _echoed(self, files: ExitStack) -> dict[BinaryIO, BinaryIO]:
        sinks = {"stdout": sys.stdout.buffer, "stderr": sys.stderr.buffer}
        return {
            files.enter_context((self._run / name).open("rb")): sink for name, sink in sinks.items()
        }

    def _connected(self) -> bool:
        return self._clock_port.connect_ex(clock_address(self._run)) == 0

    def _wait_until(self, reached: Callable[[], bool], otherwise: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not reached():
            if self._process.poll() is not None and not reached():
                raise GuestError(f"{self.what}: the guest ended and {otherwise}", self._console)
            if time.monotonic() > deadline:
                raise GuestError(f"{self.what}: {otherwise} in {timeout_s:g} s", self._console)
            time.sleep(_POLL_S)


@contextmanager
def booted(
    kernel: Kernel,
    shape: str,
    command: Sequence[str],
    run: Path,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Guest]:
    """
    A guest that runs ``command`` in this checkout, as root; ended on leaving, whatever happens.

    ``run`` is a new directory for all that comes back: ``stdout``, ``stderr``, ``console.log``
    and ``out/``, which the command knows as LAB_OUT. /var/tmp is a disk of 256 MiB. The guest
    lives no longer than the calling thread. Raises GuestError when it does not come up.

    Emulation breaks a kernel that patches its own code now and then (int3 in sched_clock_cpu, seen
    on 7.3 in boot; a CPU locked up in smp_call_function_single, seen on 6.1 when a tracepoint got
    its first user). That is done before anything of ours starts, and a guest that panics so early
    is booted again, with a warning.
    """
    check_programs()
    (run / "out").mkdir(parents=True)
    disk = run / "disk.img"
    with disk.open("wb") as image:
        image.truncate(_DISK_BYTES)
    subprocess.run(("mkfs.ext4", "-q", str(disk)), check=True, env={"PATH": search_path()})
    given = {
        "LAB_OUT": str(run / "out"),
        "PYTHONPATH": str(CHECKOUT),
        "KERNEL_TESTS": "1",
        "TRUTH_PRECISION": str(TRUTH_PRECISION),
        **(environment or {}),
    }
    task = {"argv": list(command), "environment": given}
    (run / "command.json").write_text(json.dumps(task))
    guest = _up(kernel, shape, run, _BOOTS)
    try:
        yield guest
    finally:
        guest.end()


def _up(kernel: Kernel, shape: str, run: Path, boots: int) -> Guest:
    """A guest whose command has started, after so many boots at most."""
    guest = Guest(f"{kernel.release} {shape}", run, _start(kernel, shape, run))
    with ExitStack() as undo:
        undo.callback(guest.end)
        try:
            guest.come_up()
        except GuestError as error:
            if boots == 1 or not guest.panicked:
                raise
            undo.close()
            (run / "console.log").rename(run / f"panic.{boots}.log")
            warnings.warn(f"booted again: {error}", stacklevel=2)
            return _up(kernel, shape, run, boots - 1)
        undo.pop_all()
    return guest


def _start(kernel: Kernel, shape: str, run: Path) -> subprocess.Popen[bytes]:
    with (run / "console.log").open("ab") as console:
        return subprocess.Popen(
            command_line(kernel, SHAPES[shape], run),
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            env={**os.environ, "PATH": search_path()},
            start_new_session=True,
        )


def new_run_directory() -> Path:
    return Path(tempfile.mkdtemp(prefix="tailtrace-lab."))


def _pass_on(outputs: Mapping[BinaryIO, BinaryIO]) -> None:
    for source, sink in outputs.items():
        sink.write(source.read())
        sink.flush()
