"""
Takes virtual CPUs away from a guest for a while, and records when in the guest's own time.

All of them: the emulator process is stopped (SIGSTOP). One: its thread is frozen in a threaded
cgroup of its own, as a signal to one thread stops the whole process. Starving: the emulator's
threads share fewer processors than there are virtual CPUs.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from lab.clock import ClockMap
from lab.vm import Guest
from tracer.errors import UnavailableError

_TAKE_TIMEOUT_S = 5.0
_STOPPED = ("T", "t")  # states in proc_pid_stat(5)


@dataclass(frozen=True)
class Interval:
    """
    What was done to which virtual CPUs, in ns of the guest's CLOCK_MONOTONIC.

    The CPUs were away from ``start_ns`` to ``end_ns``, each wrong by at most the uncertainty. When
    they run again after that is for this machine's scheduler to decide.
    """

    kind: str
    start_ns: int
    end_ns: int
    uncertainty_ns: int
    cpus: tuple[int, ...]


def stall_all(guest: Guest, seconds: float) -> Interval:
    """Stops every virtual CPU at once."""
    emulator, threads = guest.emulator.pid, guest.cpu_threads

    def stop() -> None:
        os.kill(emulator, signal.SIGSTOP)
        _wait_until(lambda: all(_state(t) in _STOPPED for t in threads.values()))

    def resume() -> None:
        os.kill(emulator, signal.SIGCONT)

    return _take_away(guest, "stall", threads, seconds, take=stop, give_back=resume)


def stall_one(guest: Guest, cpu: int, seconds: float) -> Interval:
    """Stops one virtual CPU; the others go on unless they need an answer from it."""
    with _own_cgroup(guest.emulator, guest.cpu_threads[cpu]) as group:

        def freeze() -> None:
            (group / "cgroup.freeze").write_text("1")
            _wait_until(lambda: "frozen 1" in (group / "cgroup.events").read_text())

        def thaw() -> None:
            (group / "cgroup.freeze").write_text("0")

        return _take_away(guest, "stall", [cpu], seconds, take=freeze, give_back=thaw)


def starve(guest: Guest, processors: int, seconds: float) -> Interval:
    """All virtual CPUs on that many of this machine's processors."""
    allowed = os.sched_getaffinity(0)

    def confine() -> None:
        _set_affinity(guest, sorted(allowed)[:processors])

    def release() -> None:
        _set_affinity(guest, allowed)

    return _take_away(guest, "starve", guest.cpu_threads, seconds, take=confine, give_back=release)


@contextmanager
def ahead_of_other_load(guest: Guest) -> Iterator[None]:
    """
    The emulator's CPUs, ahead of them its threads that deliver the timers, and ahead of all this
    process, which times the stalls. Else this machine's scheduler takes CPUs away, too, and nobody
    writes that down.
    """
    cpus = guest.cpu_threads.values()
    for thread in guest.emulator.threads():
        priority = 1 if thread.id in cpus else 2
        os.sched_setscheduler(thread.id, os.SCHED_RR, os.sched_param(priority))
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(3))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def write_truth(path: Path, intervals: Sequence[Interval]) -> None:
    """The file that tests compare with: JSON, the fields of Interval."""
    truth = {"clock": "guest CLOCK_MONOTONIC", "intervals": [asdict(i) for i in intervals]}
    path.write_text(json.dumps(truth, indent=2) + "\n")


def _take_away(
    guest: Guest,
    kind: str,
    cpus: Collection[int],
    seconds: float,
    *,
    take: Callable[[], None],
    give_back: Callable[[], None],
) -> Interval:
    before = guest.read_clock()
    asked_ns = time.monotonic_ns()
    try:
        take()
        taken_ns = time.monotonic_ns()
        time.sleep(seconds)
        returning_ns = time.monotonic_ns()
    finally:
        give_back()
    returned_ns = time.monotonic_ns()
    return interval(
        kind,
        cpus,
        start=(before, asked_ns, taken_ns),
        end=(guest.read_clock(), returning_ns, returned_ns),
    )


def interval(
    kind: str,
    cpus: Collection[int],
    start: tuple[ClockMap, int, int],
    end: tuple[ClockMap, int, int],
) -> Interval:
    """Each end is somewhere between two moments in host ns, and has the clock map read nearest."""
    edges = [
        (clock.to_guest((earliest + latest) // 2), clock.uncertainty_ns + (latest - earliest) // 2)
        for clock, earliest, latest in (start, end)
    ]
    (start_ns, start_uncertainty_ns), (end_ns, end_uncertainty_ns) = edges
    uncertainty_ns = max(start_uncertainty_ns, end_uncertainty_ns)
    return Interval(kind, start_ns, end_ns, uncertainty_ns, tuple(sorted(cpus)))


def cgroup_of_stalled_cpu(emulator: psutil.Process) -> Path:
    """Exists while one of its CPUs is stalled; stays behind, empty, after kill -9 meanwhile."""
    return _cgroup2_mount() / f"tailtrace-lab.{emulator.pid}" / "cpu"


@contextmanager
def _own_cgroup(process: psutil.Process, thread: int) -> Iterator[Path]:
    """A threaded cgroup with that thread alone. cgroup v2 freezes such a group since Linux 5.2."""
    home = _cgroup2_mount() / _cgroup2_path(process).lstrip("/")
    group = cgroup_of_stalled_cpu(process)
    domain = group.parent
    group.mkdir(parents=True)
    try:
        (domain / "cgroup.procs").write_text(str(process.pid))
        (group / "cgroup.type").write_text("threaded")
        (group / "cgroup.threads").write_text(str(thread))
        yield group
    finally:
        (domain / "cgroup.threads").write_text(str(thread))
        group.rmdir()
        (home / "cgroup.procs").write_text(str(process.pid))
        domain.rmdir()


def _cgroup2_mount() -> Path:
    for mount in Path("/proc/mounts").read_text().splitlines():
        _, point, kind, *_ = mount.split()
        if kind == "cgroup2":
            return Path(point)
    raise UnavailableError("stall of one CPU: no cgroup2 is mounted on this machine")


def _cgroup2_path(process: psutil.Process) -> str:
    lines = Path(f"/proc/{process.pid}/cgroup").read_text().splitlines()
    return next(line.removeprefix("0::") for line in lines if line.startswith("0::"))


def _set_affinity(guest: Guest, processors: Collection[int]) -> None:
    for thread in guest.emulator.threads():
        os.sched_setaffinity(thread.id, processors)


def _state(thread: int) -> str:
    return Path(f"/proc/{thread}/stat").read_text().rpartition(")")[2].split()[0]


def _wait_until(taken: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TAKE_TIMEOUT_S
    while not taken():
        if time.monotonic() > deadline:
            raise UnavailableError(f"stall: the CPUs still ran after {_TAKE_TIMEOUT_S:g} s")
