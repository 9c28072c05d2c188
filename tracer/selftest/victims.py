"""
Programs that something happens to, and that tell by themselves what it was.

``python -m tracer.selftest.victims WHAT ...`` prepares, prints ``ready``, waits for a signal, does
its work, prints ``done``, waits for a signal, prints one JSON account, and is gone at once. It
needs nothing but Python. Times are CLOCK_MONOTONIC ns, as the kernel side has them.

A thread's ledger outside of steps ends with the thread, so nothing that takes time may happen to a
victim before or after its work: what it needs it prepares before it is followed, it waits in
``sigwait``, a wait of no other cause, and around its work it is in a hurry, lest it wait for a CPU.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

now_ns = time.monotonic_ns

GO = signal.SIGUSR1

Work = Callable[[], Any]
Victim = Callable[..., Work]
"""Takes its arguments as text, prepares, and returns the work, which returns what it saw."""

_READ = 1 << 20  # bytes; few and long waits, because the account of short ones is less exact
_TIMES = 4  # that a file is read, so that a fast disk takes a while, too
_STRIDE = 1 << 16  # bytes from one touched page to the next
_HUGE_PAGE = 2 << 20  # bytes; some architectures have larger ones, too
_LATE = 4  # times as long as usual
_NOT_MARKED: AbstractContextManager[object] = nullcontext()


def spin(cpu: str, seconds: str) -> Work:
    """Spin on a CPU; report every interval of a millisecond in which it did not get to look."""
    os.sched_setaffinity(0, {int(cpu)})
    return lambda: gaps(float(seconds), 1_000_000)  # fewer than a pipe holds: it may be read late


def gaps(seconds: float, shortest_ns: int) -> list[tuple[int, int]]:
    """Spin, and return the intervals of at least so many ns between two looks at the clock."""
    found, before = [], now_ns()
    end = before + int(seconds * 1e9)
    while before < end:
        now = now_ns()
        if now - before >= shortest_ns:
            found.append((before, now))
        before = now
    return found


def watch(cpu: str, seconds: str) -> Work:
    """Spin on a CPU; report the ns in which it did not get to look as often as usual."""
    os.sched_setaffinity(0, {int(cpu)})

    def work() -> int:
        _in_a_hurry()  # an interrupt that comes when another thread runs is none of ours
        usual = statistics.median(end - begin for begin, end in gaps(0.01, 0))
        return sum(end - begin for begin, end in gaps(float(seconds), int(_LATE * usual)))

    return work


def spin_against(cpu: str, seconds: str, rival: str) -> Work:
    """Spin on a CPU; report the CPU time in ns that a rival process used meanwhile."""
    os.sched_setaffinity(0, {int(cpu)})
    clock = (~int(rival) << 3) | 2  # include/linux/posix-timers.h: CPUCLOCK_SCHED of a process

    def work() -> int:
        before = time.clock_gettime_ns(clock)
        gaps(float(seconds), 1_000_000_000)
        return time.clock_gettime_ns(clock) - before

    return work


def spin_fifo(cpu: str, seconds: str) -> Work:
    """Spin as a real-time thread; report every interval without the CPU."""
    os.sched_setaffinity(0, {int(cpu)})

    def work() -> list[tuple[int, int]]:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        return gaps(float(seconds), 100_000)

    return work


def wake_late(cpu: str, seconds: str) -> Work:
    """Sleep a little, again and again, and preempt nobody on waking up."""
    nap_ns = 1_300_000  # no divisor of a rival's period: else they meet when it goes to sleep
    os.sched_setaffinity(0, {int(cpu)})

    def work() -> None:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        end = now_ns() + int(float(seconds) * 1e9)
        while now_ns() < end:
            time.sleep(nap_ns / 1e9)

    return work


def sleep(count: str, ms: str) -> Work:
    """time.sleep, so clock_nanosleep."""

    def work() -> None:
        for _ in range(int(count)):
            time.sleep(float(ms) / 1e3)

    return work


def futex(count: str, ms: str) -> Work:
    """Wait for a lock that another thread lets go after a while."""
    lock = threading.Semaphore(0)  # one that is let go before it is wanted is not lost

    def let_go() -> None:
        for _ in range(int(count)):
            time.sleep(float(ms) / 1e3)
            lock.release()

    def work() -> None:
        threading.Thread(target=let_go).start()
        for _ in range(int(count)):
            lock.acquire()

    return work


def pipe(count: str, ms: str) -> Work:
    """Read from a pipe that a child process writes to."""
    reader, writer = os.pipe()
    return wait_for_bytes(int(count), float(ms), reader, writer, lambda: None)


def wait_for_bytes(
    count: int, ms: float, reader: int, writer: int, wait: Callable[[], object]
) -> Work:
    """Wait for, and read, so many bytes that a child process writes so many ms apart."""

    def work() -> None:
        if os.fork() == 0:
            for _ in range(count):
                time.sleep(ms / 1e3)
                os.write(writer, b"x")
            os._exit(0)
        for _ in range(count):
            wait()
            os.read(reader, 1)

    return work


def disk(megabytes: str) -> Work:
    """Read a file past the page cache."""
    buffer, size = mmap.mmap(-1, _READ), int(megabytes) << 20
    fd = _nameless_file(size)
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_DIRECT)

    def work() -> None:
        for at in [*range(0, size, _READ)] * _TIMES:
            os.preadv(fd, [buffer], at)

    return work


def fault(megabytes: str) -> Work:
    """Touch the pages of a mapped file that is not in memory."""
    size = int(megabytes) << 20
    fd = _nameless_file(size)
    mapped = mmap.mmap(fd, size, prot=mmap.PROT_READ)
    mapped.madvise(mmap.MADV_RANDOM)  # no read-ahead

    def work() -> None:
        for at in range(0, size, _STRIDE):
            _ = mapped[at]

    return work


def huge_pages(megabytes: str, times: str) -> Work:
    """Touch huge pages that the kernel has to clear; report the ns that it took."""
    size = int(megabytes) << 20
    mapped = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    mapped.madvise(mmap.MADV_HUGEPAGE)

    def work() -> int:
        took = 0
        for _ in range(int(times)):
            for at in range(0, size, _HUGE_PAGE):
                before = now_ns()
                mapped[at] = 1
                took += now_ns() - before
            mapped.madvise(mmap.MADV_DONTNEED)
        return took

    return work


def _nameless_file(size: int) -> int:
    """A file on a disk, not in memory, that is gone with its process."""
    fd, name = tempfile.mkstemp(dir="/var/tmp")
    Path(name).unlink()
    content = os.urandom(_READ)
    for _ in range(0, size, _READ):
        os.write(fd, content)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, size, os.POSIX_FADV_DONTNEED)
    return fd


VICTIMS: Mapping[str, Victim] = {
    victim.__name__: victim
    for victim in (
        spin,
        spin_against,
        spin_fifo,
        wake_late,
        sleep,
        futex,
        pipe,
        disk,
        fault,
        huge_pages,
        watch,
    )
}


def serve(
    victims: Mapping[str, Victim],
    arguments: Sequence[str],
    mark: AbstractContextManager[object] = _NOT_MARKED,
) -> None:
    """
    Be the victim that the arguments name, and do its work within a mark. Does not return.

    The account has ``saw``, ``waited_ns``: what the work took beyond the CPU time it used, and
    ``run_delay_ns``: how much of that it was in the run queue, by the kernel's own count.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {GO})
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody has to wait for our children
    _die_with_parent()
    work = victims[arguments[0]](*arguments[1:])
    usual = _in_a_hurry()
    print("ready", flush=True)
    signal.sigwait({GO})
    with mark:
        waited_before, queued_before = _without_cpu_ns()
        os.setpriority(os.PRIO_PROCESS, 0, usual)
        saw = work()
        _in_a_hurry()
        waited, queued = _without_cpu_ns()
    print("done", flush=True)
    signal.sigwait({GO})
    without_cpu = {"waited_ns": waited - waited_before, "run_delay_ns": queued - queued_before}
    print(json.dumps({"saw": saw, **without_cpu}), flush=True)
    os._exit(0)


def _without_cpu_ns() -> tuple[int, int]:
    """So far: wall time less CPU time, and what of it was in the run queue; of one moment."""
    while True:
        queued = run_delay_ns()
        waited = now_ns() - time.thread_time_ns()
        if run_delay_ns() == queued:
            return waited, queued


def run_delay_ns() -> int:
    """What the kernel counts of this thread in the run queue; proc(5), /proc/PID/schedstat."""
    _, waited, turns = Path("/proc/thread-self/schedstat").read_text().split()
    if turns == "0":
        sys.exit("this kernel counts no waits in /proc/PID/schedstat")
    return int(waited)


def _die_with_parent() -> None:
    """Let SIGIO end us when the other end of our standard input is closed, as by its death."""
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)


def _in_a_hurry() -> int:
    """Take the highest priority of ordinary threads; returns the one before."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    return before


if __name__ == "__main__":
    serve(VICTIMS, sys.argv[1:])
