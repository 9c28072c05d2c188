"""
How the emulator is started: the hardware it shows, its command line, and who ends it.

Everything is emulated: nested virtualisation is absent on most build machines, and a guest without
a steal clock is what the stall tests need.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from lab.guest import CLOCK_PORT
from lab.kernels import Kernel
from tracer.errors import UnavailableError

CHECKOUT = Path(__file__).parents[1]

_NEEDED = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "mkfs.ext4": "e2fsprogs",
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


def clock_address(run: Path) -> str:
    """In the abstract namespace (unix(7)): nothing to remove, and paths may be long there."""
    return f"\0tailtrace-lab-{run.stat().st_ino}"


def command_line(kernel: Kernel, shape: Shape, run: Path) -> list[str]:
    inside = shlex.join([sys.executable, "-m", "lab.guest", str(run)])
    clock = clock_address(run).removeprefix("\0")
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
        # A kernel that is broken ends, with its last words on the console.
        *("--append", "oops=panic softlockup_panic=1"),
        # Reading any other clock takes the emulator's one big lock: a virtual CPU that is stopped
        # on its own while it holds the lock would stop all others.
        *("--append", "tsc=reliable"),
        *("--disk", str(run / "disk.img")),
        *("--overlay-rwdir", str(CHECKOUT), "--rwdir", str(run)),
        f"--qemu-opts={emulator}",
        *("--exec", f"exec {inside} >/dev/console 2>&1"),
    ]


def search_path() -> str:
    """virtme-ng stands beside the interpreter and looks for its own parts in PATH."""
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin:/sbin"


def check_programs() -> None:
    if os.geteuid() != 0:
        raise UnavailableError("lab: needs root, as the guest reads this machine's files as root")
    for program, package in _NEEDED.items():
        if shutil.which(program, path=search_path()) is None:
            raise UnavailableError(f"lab: {program} is missing: apt-get install {package}")
    if shutil.which("vng", path=search_path()) is None:
        raise UnavailableError("lab: vng is missing: pip install virtme-ng")
