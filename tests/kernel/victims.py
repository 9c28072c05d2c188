"""
Programs that something happens to, and that tell by themselves what it was.

``victims.py WHAT ...`` prints ``ready``, waits for a line, does its work, and prints one JSON
value: what it saw on its own clock. Times are CLOCK_MONOTONIC ns, as the kernel side has them.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import mmap
import os
import resource
import select
import socket
import sys
import tempfile
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import stepmark

now_ns = time.monotonic_ns
work = stepmark.step("work", tenants="victim")
"""What is done in this step is what the test looks at."""


@work
def spin(cpu: str, seconds: str) -> Any:
    """Spin on a CPU; report every interval in which it did not get to read the clock."""
    os.sched_setaffinity(0, {int(cpu)})
    return _gaps(float(seconds), 1_000)


def _gaps(seconds: float, shortest_ns: int) -> list[tuple[int, int]]:
    gaps, before = [], now_ns()
    end = before + int(seconds * 1e9)
    while before < end:
        now = now_ns()
        if now - before >= shortest_ns:
            gaps.append((before, now))
        before = now
    return gaps


def spin_in_steps(cpu: str, seconds: str, step_ms: str) -> Any:
    """Spin in marked steps; report each with its gaps."""
    os.sched_setaffinity(0, {int(cpu)})
    end, steps = now_ns() + int(float(seconds) * 1e9), []
    while now_ns() < end:
        with stepmark.step("spin", tenants="victim"):
            steps.append(_gaps(float(step_ms) / 1e3, 100_000))
    return steps


@work
def spin_fifo(cpu: str, seconds: str) -> Any:
    """Spin as a real-time thread."""
    os.sched_setaffinity(0, {int(cpu)})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    return _gaps(float(seconds), 100_000)


def burst_fifo(cpu: str, seconds: str, busy_ms: str, idle_ms: str) -> Any:
    """Take the CPU from everybody else, in bursts."""
    os.sched_setaffinity(0, {int(cpu)})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    end = now_ns() + int(float(seconds) * 1e9)
    while now_ns() < end:
        _gaps(float(busy_ms) / 1e3, 1_000_000_000)
        time.sleep(float(idle_ms) / 1e3)
    return None


@work
def wake_late(cpu: str, seconds: str) -> Any:
    """Sleep 1 ms at a time; report when it should have woken and when it did."""
    os.sched_setaffinity(0, {int(cpu)})
    late, end = [], now_ns() + int(float(seconds) * 1e9)
    while (asked := now_ns() + 1_000_000) < end:
        _sleep_until(asked)
        late.append((asked, now_ns()))
    return late


def _sleep_until(at_ns: int) -> None:
    timespec = (ctypes.c_long * 2)(*divmod(at_ns, 1_000_000_000))
    ctypes.CDLL(None).clock_nanosleep(1, 1, timespec, None)  # CLOCK_MONOTONIC, TIMER_ABSTIME


@contextmanager
def waiting() -> Iterator[dict[str, int]]:
    """A step of work; tells what it took beyond the CPU time that it used."""
    account = {}
    with work:
        used, before = time.thread_time_ns(), now_ns()
        yield account
        used, after = time.thread_time_ns() - used, now_ns()
    account["waited_ns"] = after - before - used


def sleep(count: str, ms: str) -> Any:
    """time.sleep, so clock_nanosleep."""
    with waiting() as account:
        for _ in range(int(count)):
            time.sleep(float(ms) / 1e3)
    return account


def futex(count: str, ms: str) -> Any:
    """Wait for a lock that another thread lets go after a while."""
    lock = threading.Lock()
    lock.acquire()

    def let_go() -> None:
        for _ in range(int(count)):
            time.sleep(float(ms) / 1e3)
            lock.release()

    threading.Thread(target=let_go).start()
    with waiting() as account:
        for _ in range(int(count)):
            lock.acquire()
    return account


def flock(ms: str) -> Any:
    """Wait for a file lock that a child process holds."""
    with tempfile.NamedTemporaryFile() as file:
        reader, writer = os.pipe()
        if os.fork() == 0:
            fcntl.flock(os.open(file.name, os.O_RDWR), fcntl.LOCK_EX)
            os.write(writer, b"x")
            time.sleep(float(ms) / 1e3)
            os._exit(0)
        os.read(reader, 1)
        with waiting() as account:
            fcntl.flock(file, fcntl.LOCK_EX)
        os.wait()
    return account


def pipe(count: str, ms: str) -> Any:
    """Read from a pipe that a child process writes to."""
    reader, writer = os.pipe()
    return _wait_for_bytes(int(count), float(ms), reader, writer, lambda: None)


def epoll(count: str, ms: str) -> Any:
    """Wait for a socket in epoll."""
    ours, theirs = socket.socketpair()
    poller = select.epoll()
    poller.register(ours, select.EPOLLIN)
    return _wait_for_bytes(int(count), float(ms), ours.fileno(), theirs.fileno(), poller.poll)


def device(count: str, ms: str) -> Any:
    """Poll a device file: a terminal's master side, in the place of an accelerator."""
    ours, theirs = os.openpty()
    poller = select.poll()
    poller.register(ours, select.POLLIN)
    tty.setraw(theirs)
    return _wait_for_bytes(int(count), float(ms), ours, theirs, poller.poll)


def _wait_for_bytes(
    count: int, ms: float, reader: int, writer: int, wait: Callable[[], object]
) -> Any:
    if os.fork() == 0:
        for _ in range(count):
            time.sleep(ms / 1e3)
            os.write(writer, b"x")
        os._exit(0)
    with waiting() as account:
        for _ in range(count):
            wait()
            os.read(reader, 1)
    os.wait()
    return account


def disk(megabytes: str) -> Any:
    """Read a file past the page cache, 64 KB at a time."""
    buffer = mmap.mmap(-1, 1 << 16)
    with _file(int(megabytes)) as path:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
        with waiting() as account:
            for at in range(0, int(megabytes) << 20, len(buffer)):
                os.preadv(fd, [buffer], at)
        os.close(fd)
    return account


def fault(megabytes: str) -> Any:
    """Touch the pages of a mapped file that is not in memory."""
    size = int(megabytes) << 20
    with _file(int(megabytes)) as path, path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, size, os.POSIX_FADV_DONTNEED)
        mapped = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)
        mapped.madvise(mmap.MADV_RANDOM)  # no read-ahead
        with waiting() as account:
            for at in range(0, size, 1 << 16):
                _ = mapped[at]
        mapped.close()
    return account


@contextmanager
def _file(megabytes: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:  # on a disk, not in memory
        path = Path(directory) / "data"
        path.write_bytes(os.urandom(megabytes << 20))
        os.sync()
        yield path


def nap_and_count(cpu: str, seconds: str) -> Any:
    """Work and nap in turns; report what the kernel counts of this thread meanwhile."""
    os.sched_setaffinity(0, {int(cpu)})
    with work:
        before, end = _kernel_counts(), now_ns() + int(float(seconds) * 1e9)
        while now_ns() < end:
            sum(range(20_000))
            time.sleep(0.0002)
        after = _kernel_counts()
    return {name: after[name] - before[name] for name in after}


def _kernel_counts() -> dict[str, int]:
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    run_delay = int(Path("/proc/thread-self/schedstat").read_text().split()[1])
    return {
        "voluntary": usage.ru_nvcsw,
        "involuntary": usage.ru_nivcsw,
        "run_delay": run_delay,
    }


def wait_for_helper(cpu: str, seconds: str) -> Any:
    """A step that waits for a thread without a mark, which spins; report that thread's gaps."""
    gaps: list[tuple[int, int]] = []

    def help() -> None:
        os.sched_setaffinity(0, {int(cpu)})
        gaps.extend(_gaps(float(seconds), 100_000))

    os.sched_setaffinity(0, set(os.sched_getaffinity(0)) - {int(cpu)} or {int(cpu)})
    helper = threading.Thread(target=help)
    with work:
        helper.start()
        helper.join()
    return gaps


def main() -> None:
    what, arguments = sys.argv[1], sys.argv[2:]
    with stepmark.step("warm-up"):
        pass  # so that the mark page is there before the tracer looks for it
    print("ready", flush=True)
    sys.stdin.readline()
    json.dump(globals()[what](*arguments), sys.stdout, default=str)


if __name__ == "__main__":
    main()
