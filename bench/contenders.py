"""The programs on the scheduler's hooks whose cost is compared: none of ours, ours, the peers'."""

from __future__ import annotations

import json
import os
import re
import subprocess
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np

from tracer.errors import UnavailableError
from tracer.kernel.btf import Btf, object_path
from tracer.kernel.hooks import INTERRUPTS, plan
from tracer.kernel.libbpf import BpfObject
from tracer.kernel.memory_hooks import allocations
from tracer.kernel.trace import KernelTrace
from tracer.targets.mark_file import Refused
from tracer.targets.mark_page import MarkPage

RunTimes = Mapping[str, tuple[int, int]]
"""Program -> (ns, runs) since load, while the kernel keeps such statistics."""

Contender = Callable[[int], AbstractContextManager[Callable[[], RunTimes]]]
"""Attached inside of the context; the argument is the pid of the load."""

Hooks = Mapping[str, re.Pattern[str]]
"""Name -> what the names of the programs on it match."""

HOOKS = {
    "switch": re.compile(r"on_switch|sched_s"),  # bcc's names are cut: raw_tp__sched_s
    "wakeup": re.compile(r"on_wakeup|sched_w"),
    "interrupt": re.compile(rf"on_({'|'.join(INTERRUPTS)})_"),
    "softirq": re.compile(r"on_softirq_"),
    "timer": re.compile(r"on_timer_"),
}
MEMORY_HOOKS = {
    "page fault": re.compile(r"on_fault_"),
    "page allocation": re.compile(r"on_page_alloc"),
}
_TENANT_SLOTS = 101
_OUTLIER_NS = 1_000_000
_PEER_STARTS_WITHIN = 20.0  # seconds; bpftrace needs some
_TRACEFS = Path("/sys/kernel/tracing")


def by_hook(times: RunTimes, hooks: Hooks = HOOKS) -> dict[str, tuple[int, int]]:
    """Hook -> (ns, runs) of all its programs."""
    totals = dict.fromkeys(hooks, (0, 0))
    for program, (ns, runs) in times.items():
        for hook, pattern in hooks.items():
            if pattern.search(program):
                totals[hook] = (totals[hook][0] + ns, totals[hook][1] + runs)
    return totals


@contextmanager
def empty(pid: int) -> Iterator[Callable[[], RunTimes]]:
    """``bpf/empty.bpf.c``."""
    info = Btf.of_kernel().dtype("bpf_prog_info")
    programs = BpfObject(object_path("empty"))
    names = tuple(programs.programs())

    def times() -> RunTimes:
        infos = [
            np.frombuffer(programs.program_info(name, info.itemsize), info)[0] for name in names
        ]
        return {
            name: (int(each["run_time_ns"]), int(each["run_cnt"]))
            for name, each in zip(names, infos, strict=True)
        }

    try:
        programs.load()
        programs.attach(names)
        yield times
    finally:
        programs.close()


def _ours() -> KernelTrace:
    """Our kernel side without a target, and with what it only has on two nodes."""
    here = plan(Btf.of_kernel())
    programs = tuple(dict.fromkeys((*here.programs, *allocations(Btf.of_kernel()).programs)))
    return KernelTrace(replace(here, programs=programs), _TENANT_SLOTS, _OUTLIER_NS)


def _track(kernel: KernelTrace, pid: int) -> None:
    """Make the load a target, and the only one."""
    try:
        page = MarkPage.open(pid)
    except Refused as e:
        raise UnavailableError(f"the load's mark page: {e}") from e
    row = kernel.processes[1]
    row["tgid"], row["page"], row["tenant"] = pid, page.address, 1
    row["tenant_slot"] = 1
    page.close()
    kernel.follow(1, pid)
    kernel.tag_threads()


@contextmanager
def untracked(pid: int) -> Iterator[Callable[[], RunTimes]]:
    """Ours, on threads that are nobody's."""
    with _ours() as kernel:
        yield kernel.run_times


@contextmanager
def tracked(pid: int) -> Iterator[Callable[[], RunTimes]]:
    """Ours, on threads that are traced and mark their steps."""
    with _ours() as kernel:
        _track(kernel, pid)

        def times() -> RunTimes:
            kernel.pieces()  # or their ring fills up, and emitting costs less than it does
            return kernel.run_times()

        yield times


@dataclass(frozen=True, slots=True)
class Peer:
    """A tool of somebody else, as its package installs it."""

    command: tuple[str, ...]

    @contextmanager
    def __call__(self, pid: int) -> Iterator[Callable[[], RunTimes]]:
        with TemporaryDirectory(prefix="tailtrace-bench-") as folder:
            said = Path(folder) / "said"
            with said.open("wb") as output, self._running(output) as process:
                programs = _wait_for_programs(process, said)
                yield lambda: _run_times(programs)

    @contextmanager
    def _running(self, output: BinaryIO) -> Iterator[subprocess.Popen[bytes]]:
        try:
            process = subprocess.Popen(self.command, stdout=output, stderr=subprocess.STDOUT)
        except FileNotFoundError as e:
            raise UnavailableError(f"{self.command[0]} is not installed") from e
        try:
            yield process
        finally:
            process.kill()  # not asked to stop: it would print all it has
            process.wait()


@contextmanager
def bpftrace_runqlat(pid: int) -> Iterator[Callable[[], RunTimes]]:
    """
    bpftrace's ``runqlat.bt``.

    Old versions of it include a kernel header for the one constant TASK_RUNNING, which is 0; that
    line is replaced where there are no such headers. bpftrace wants tracefs: it is mounted for it
    alone where it is not.
    """
    script = Path("/usr/sbin/runqlat.bt")
    if not script.exists():
        raise UnavailableError("runqlat.bt is not installed")
    with TemporaryDirectory(prefix="tailtrace-bench-") as folder:
        copy = Path(folder) / "runqlat.bt"
        include, constant = "#include <linux/sched.h>", "#define TASK_RUNNING 0"
        text = script.read_text()
        copy.write_text(text if "TASK_RUNNING 0" in text else text.replace(include, constant))
        command: tuple[str, ...] = ("bpftrace", str(copy))
        if not (_TRACEFS / "events").exists():
            mount = f'mount -t tracefs none {_TRACEFS} && exec "$@"'
            command = ("unshare", "--mount", "sh", "-c", mount, "sh", *command)
        with Peer(command)(pid) as times:
            yield times


CONTENDERS: dict[str, Contender] = {
    "empty": empty,
    "ours, untracked": untracked,
    "ours, tracked": tracked,
    "libbpf-tools runqlat": Peer(("runqlat",)),
    "libbpf-tools cpudist": Peer(("cpudist",)),
    "libbpf-tools offcputime": Peer(("offcputime",)),
    "bcc runqlat": Peer(("runqlat-bpfcc",)),
    "bpftrace runqlat": bpftrace_runqlat,
}


def _wait_for_programs(process: subprocess.Popen[bytes], said: Path) -> frozenset[int]:
    """The ids of a peer's programs, once it has loaded them all."""
    deadline, found = time.monotonic() + _PEER_STARTS_WITHIN, frozenset[int]()
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise UnavailableError(complaint(said.read_text(errors="replace")))
        before, found = found, _programs_of(process.pid)
        if found and found == before:
            return found
        time.sleep(0.3)
    raise UnavailableError(f"loaded no program within {_PEER_STARTS_WITHIN:g} s")


def complaint(said: str) -> str:
    """The line by which a tool that gave up says why; its first one of that kind."""
    lines = [line.strip() for line in said.splitlines()]
    telling = [line for line in lines if re.search(r"(?i)\bunable\b|\bfailed\b|\berror\b", line)]
    reason = next(iter(telling), lines[-1] if lines else "ended without a word")
    return textwrap.shorten(reason, 120, placeholder=" ...")


def _programs_of(pid: int, proc: Path = Path("/proc")) -> frozenset[int]:
    """The BPF programs that a process holds open, by the id in its ``fdinfo``."""
    found = set()
    for descriptor in (proc / str(pid) / "fdinfo").iterdir():
        try:
            text = descriptor.read_text()
        except FileNotFoundError:  # closed since it was listed
            continue
        # A link's descriptor has the id of its program, too, but no type.
        if "prog_type:" in text:
            found |= {int(number) for number in re.findall(r"^prog_id:\s*(\d+)", text, re.M)}
    return frozenset(found)


def _run_times(programs: frozenset[int]) -> RunTimes:
    environment = os.environ | {"LC_ALL": "C"}
    command = ["bpftool", "--json", "prog", "show"]
    shown = subprocess.run(command, capture_output=True, check=True, text=True, env=environment)
    return parse_run_times(json.loads(shown.stdout), programs)


def parse_run_times(shown: list[dict[str, Any]], programs: frozenset[int]) -> RunTimes:
    """``bpftool --json prog show``, which has no times for a program that never ran."""
    return {
        f"{each.get('name', '')}#{each['id']}": (each.get("run_time_ns", 0), each.get("run_cnt", 0))
        for each in shown
        if each["id"] in programs
    }
