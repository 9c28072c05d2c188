"""
The victims of the selftest, whose work is a marked step here, and more of their kind.

What is done in the step ``work`` is what the tests look at.
"""

from __future__ import annotations

import fcntl
import os
import resource
import select
import socket
import sys
import tempfile
import threading
import time
import tty
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import stepmark
from tracer.selftest.victims import (
    VICTIMS,
    Work,
    gaps,
    now_ns,
    run_delay_ns,
    serve,
    wait_for_bytes,
)


def spin_in_steps(cpu: str, seconds: str, step_ms: str) -> Work:
    """Spin in marked steps; report each with its gaps."""
    os.sched_setaffinity(0, {int(cpu)})

    def work() -> Any:
        end, steps = now_ns() + int(float(seconds) * 1e9), []
        while now_ns() < end:
            with stepmark.step("spin", tenants="victim"):
                steps.append(gaps(float(step_ms) / 1e3, 100_000))
        return steps

    return work


def burst_fifo(cpu: str, seconds: str, busy_ms: str, idle_ms: str) -> Work:
    """Take the CPU from everybody else, in bursts."""
    os.sched_setaffinity(0, {int(cpu)})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))

    def work() -> None:
        end = now_ns() + int(float(seconds) * 1e9)
        while now_ns() < end:
            gaps(float(busy_ms) / 1e3, 1_000_000_000)
            time.sleep(float(idle_ms) / 1e3)

    return work


def flock(ms: str) -> Work:
    """Wait for a file lock that a child process holds."""
    file, name = tempfile.mkstemp()
    (reader, tell), (told, writer) = os.pipe(), os.pipe()
    if os.fork() == 0:
        fcntl.flock(os.open(name, os.O_RDWR), fcntl.LOCK_EX)
        os.write(tell, b"x")
        os.close(writer)
        os.read(told, 1)
        time.sleep(float(ms) / 1e3)
        os._exit(0)
    os.read(reader, 1)
    Path(name).unlink()

    def work() -> None:
        os.write(writer, b"x")
        fcntl.flock(file, fcntl.LOCK_EX)

    return work


def epoll(count: str, ms: str) -> Work:
    """Wait for a socket in epoll."""
    ours, theirs = socket.socketpair()
    poller = select.epoll()
    poller.register(ours, select.EPOLLIN)
    return wait_for_bytes(int(count), float(ms), ours.detach(), theirs.detach(), poller.poll)


def device(count: str, ms: str) -> Work:
    """Poll a device file: a terminal's master side, in the place of an accelerator."""
    ours, theirs = os.openpty()
    poller = select.poll()
    poller.register(ours, select.POLLIN)
    tty.setraw(theirs)
    return wait_for_bytes(int(count), float(ms), ours, theirs, poller.poll)


def nap_and_count(cpu: str, seconds: str) -> Work:
    """Work and nap in turns; report what the kernel counts of this thread meanwhile."""
    os.sched_setaffinity(0, {int(cpu)})

    def work() -> dict[str, int]:
        before, end = _kernel_counts(), now_ns() + int(float(seconds) * 1e9)
        while now_ns() < end:
            sum(range(20_000))
            time.sleep(0.0002)
        after = _kernel_counts()
        return {name: after[name] - before[name] for name in after}

    return work


def _kernel_counts() -> dict[str, int]:
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return {
        "voluntary": usage.ru_nvcsw,
        "involuntary": usage.ru_nivcsw,
        "run_delay": run_delay_ns(),
    }


def wait_for_helper(cpu: str, seconds: str) -> Work:
    """A step that waits for a thread without a mark, which spins; report that thread's gaps."""
    seen: list[tuple[int, int]] = []

    def help() -> None:
        os.sched_setaffinity(0, {int(cpu)})
        seen.extend(gaps(float(seconds), 100_000))

    os.sched_setaffinity(0, set(os.sched_getaffinity(0)) - {int(cpu)} or {int(cpu)})
    helper = threading.Thread(target=help)

    def work() -> Any:
        helper.start()
        helper.join()
        return seen

    return work


OF_TESTS = {
    victim.__name__: victim
    for victim in (
        spin_in_steps,
        burst_fifo,
        flock,
        epoll,
        device,
        nap_and_count,
        wait_for_helper,
    )
}


def main() -> None:
    with stepmark.step("warm-up"):
        pass  # so that the mark page is there before the tracer looks for it
    mark: AbstractContextManager[object] = stepmark.step("work", tenants="victim")
    serve(
        VICTIMS | OF_TESTS, sys.argv[1:], nullcontext() if sys.argv[1] == "spin_in_steps" else mark
    )


if __name__ == "__main__":
    main()
