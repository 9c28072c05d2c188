"""
Runs inside the guest, as root: the command, and answers to questions for the clock meanwhile.

Everything goes through the run directory, which guest and host share: ``command.json`` in;
``started``, ``stdout``, ``stderr`` and at last ``status`` out.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path

from lab.clock import ANSWER, QUESTION

CLOCK_PORT = "tailtrace.clock"

_MOUNTS = {
    "/sys/fs/bpf": ("bpf", "bpf"),
    "/sys/kernel/tracing": ("tracefs", "tracefs"),
    # The other file systems lie in memory or on the host: no read from them waits for a disk.
    "/var/tmp": ("ext4", "/dev/vda"),
}
_CONTROLLERS = Path("/sys/fs/cgroup/cgroup.subtree_control")
_TRACING = Path("/sys/kernel/tracing")
_OBJECTS = Path(__file__).parents[1] / "tracer/kernel/objects"


def main(run: Path) -> None:
    _set_up()
    port = os.open(f"/dev/virtio-ports/{CLOCK_PORT}", os.O_RDWR)
    task = json.loads((run / "command.json").read_text())
    with (run / "stdout").open("wb") as stdout, (run / "stderr").open("wb") as stderr:
        command = subprocess.Popen(
            task["argv"], env=os.environ | task["environment"], stdout=stdout, stderr=stderr
        )
        (run / "started").touch()
        _answer_until_exit(port, command.pid)
    _publish(run / "status", str(command.wait()))


def _set_up() -> None:
    """What an init would have done."""
    lines = Path("/proc/mounts").read_text().splitlines()
    mounted = {line.split()[1]: line.split()[2] for line in lines}
    for point, (kind, what) in _MOUNTS.items():
        if mounted.get(point) != kind:
            subprocess.run(("mount", "-t", kind, what, point), check=True)
    _CONTROLLERS.write_text("+cpu")
    _patch_tracepoints()


def _patch_tracepoints() -> None:
    """
    Once, while nothing else goes on: the emulator does not always see code change below a CPU.

    A kernel patches a tracepoint's code for its first and its second user, not for a third
    (tracepoint_add_func() in kernel/tracepoint.c). Two tracers that write nothing are those.
    """
    used = {
        name.decode()
        for built in _OBJECTS.glob("*.bpf.o")
        for name in re.findall(rb"tp_btf/(\w+)", built.read_bytes())
    }
    for name in ("first", "second"):
        tracer = _TRACING / "instances" / name
        tracer.mkdir()
        (tracer / "tracing_on").write_text("0")
        for event in tracer.glob("events/*/*"):
            if event.name in used:
                (event / "enable").write_text("1")


def _answer_until_exit(port: int, pid: int) -> None:
    command = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(command, select.POLLIN)
    poll.register(port, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll()}
        if port in ready:
            (number,) = QUESTION.unpack(os.read(port, QUESTION.size))
            os.write(port, ANSWER.pack(number, time.monotonic_ns()))
        if command in ready:
            return


def _publish(path: Path, text: str) -> None:
    """Whole or absent, for the reader on the host."""
    partial = path.with_suffix(".partial")
    partial.write_text(text)
    partial.rename(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
