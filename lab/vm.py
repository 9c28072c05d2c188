"""
One virtual machine, one command in it: boot, run as root, bring back status, output and files.

The guest sees this machine's files (writes go to an overlay that dies with it), so it has the same
interpreter, virtual environment and checkout. Everything is emulated: nested virtualisation is
absent on most build machines, and a guest without a steal clock is what the stall tests need.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import psutil

from lab.clock import ClockMap, read_guest_clock
from lab.errors import GuestError
from lab.guest import CLOCK_PORT
from lab.kernels import Kernel
from tracer.errors import UnavailableError

CHECKOUT = Path(__file__).parents[1]

BOOT_TIMEOUT_S = 180.0
_POLL_S = 0.05
_DISK_BYTES = 256 << 20

_NEEDED = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "udevadm": "udev",
    "depmod": "kmod",
    "setpriv": "util-linux",
    "unshare": "util-linux",
}
"""Programs and the Debian packages they come from."""

# The guardian: a pid namespace whose first process dies with the namespace's parent, and that
# parent with the thread that started it. The kernel then kills everything inside, even after
# kill -9 of the harness and while the emulator is stopped.
_GUARDIAN = (
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *("unshare", "--pid", "--fork", "--kill-child=KILL", "--"),
)


@dataclass(frozen=True)
class Shape:
    """What the guest takes for its hardware, in the words of the emulator's options."""

    cpus: str
    nodes: tuple[str, ...] = ()
    memory: str = "2G"


SHAPES = {
    "two-node": Shape("4,sockets=2,cores=2,threads=1", ("1G,cpus=0-1", "1G,cpus=2-3")),
    "flat-vm": Shape("8,sockets=8,cores=1,threads=1"),
}


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
        """This machine's CLOCK_MONOTONIC to the guest's, as of now."""
        return read_guest_clock(self._clock_port)

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
    def _console(self) -> Path:
        return self._run / "console.log"

    def _echoed(self, files: ExitStack) -> dict[BinaryIO, BinaryIO]:
        sinks = {"stdout": sys.stdout.buffer, "stderr": sys.stderr.buffer}
        return {
            files.enter_context((self._run / name).open("rb")): sink for name, sink in sinks.items()
        }

    def _connected(self) -> bool:
        return self._clock_port.connect_ex(_clock_address(self._run)) == 0

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
    and ``out/``, which the command knows as LAB_OUT. /dev/vda is an empty disk of 256 MiB. The
    guest lives no longer than the calling thread. Raises GuestError when it does not come up.
    """
    _check_programs()
    (run / "out").mkdir(parents=True)
    with (run / "disk.img").open("wb") as disk:
        disk.truncate(_DISK_BYTES)
    given = {"LAB_OUT": str(run / "out"), "PYTHONPATH": str(CHECKOUT), **(environment or {})}
    task = {"argv": list(command), "environment": given}
    (run / "command.json").write_text(json.dumps(task))
    with (run / "console.log").open("ab") as console:
        process = subprocess.Popen(
            _command_line(kernel, SHAPES[shape], run),
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            env={**os.environ, "PATH": _search_path()},
            start_new_session=True,
        )
    guest = Guest(f"{kernel.release} {shape}", run, process)
    try:
        guest.come_up()
        yield guest
    finally:
        guest.end()


def run_command(kernel: Kernel, shape: str, command: Sequence[str]) -> Outcome:
    """Boots, runs the command to its end, and returns what it left in a new temporary directory."""
    with booted(kernel, shape, command, new_run_directory()) as guest:
        return guest.wait()


def new_run_directory() -> Path:
    return Path(tempfile.mkdtemp(prefix="tailtrace-lab."))


def _clock_address(run: Path) -> str:
    """In the abstract namespace (unix(7)): nothing to remove, and paths may be long there."""
    return f"\0tailtrace-lab-{run.stat().st_ino}"


def _command_line(kernel: Kernel, shape: Shape, run: Path) -> list[str]:
    inside = shlex.join([sys.executable, "-m", "lab.guest", str(run)])
    clock = _clock_address(run).removeprefix("\0")
    emulator = (
        "-name tailtrace-lab,debug-threads=on"
        f" -chardev socket,id=clock,path={clock},abstract=on,server=on,wait=off"
        f" -device virtio-serial-pci -device virtserialport,name={CLOCK_PORT},chardev=clock"
    )
    nodes = [word for node in shape.nodes for word in ("--numa", node)]
    return [
        *_GUARDIAN,
        *("vng", "--run", str(kernel.image), "--disable-kvm", "--force-9p", "--verbose"),
        *("--user", "root", "--cwd", str(CHECKOUT)),
        *("--cpus", shape.cpus, "--memory", shape.memory, *nodes),
        # Reading any other clock takes the emulator's one big lock: a virtual CPU that is stopped
        # on its own while it holds the lock would stop all others.
        *("--append", "tsc=reliable"),
        *("--disk", str(run / "disk.img")),
        *("--overlay-rwdir", str(CHECKOUT), "--rwdir", str(run)),
        f"--qemu-opts={emulator}",
        *("--exec", f"exec {inside} >/dev/console 2>&1"),
    ]


def _search_path() -> str:
    """virtme-ng stands beside the interpreter and looks for its own parts in PATH."""
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin:/sbin"


def _check_programs() -> None:
    if os.geteuid() != 0:
        raise UnavailableError("lab: needs root, as the guest reads this machine's files as root")
    for program, package in _NEEDED.items():
        if shutil.which(program, path=_search_path()) is None:
            raise UnavailableError(f"lab: {program} is missing: apt-get install {package}")
    if shutil.which("vng", path=_search_path()) is None:
        raise UnavailableError("lab: vng is missing: pip install virtme-ng")


def _pass_on(outputs: Mapping[BinaryIO, BinaryIO]) -> None:
    for source, sink in outputs.items():
        sink.write(source.read())
        sink.flush()
