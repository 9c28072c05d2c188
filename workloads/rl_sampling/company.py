"""The processes of a run: started, watched, and stopped so that nothing is left behind."""

from __future__ import annotations

import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO

from workloads.rl_sampling import account
from workloads.rl_sampling.account import Timed
from workloads.rl_sampling.actor import READY_SIGNAL, STOP_SIGNALS
from workloads.rl_sampling.pinning import Cpus, pinned_to

GRACE_S = 30.0
"""For an actor to finish its step and write its account."""

TICK_S = 1.0

WATCHED = STOP_SIGNALS | {READY_SIGNAL, signal.SIGCHLD}

BLAS_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class ActorError(Exception):
    """An actor ended before it was told to, or did not end when told."""


@dataclass(frozen=True, slots=True)
class Actor:
    role: str
    process: subprocess.Popen[str]
    account: IO[str]
    """Its standard output: a file without a name, so it neither fills up nor stays behind."""

    def __str__(self) -> str:
        return f"{self.role} (pid {self.process.pid})"


class Company:
    """All actors of a run. As a context manager: whoever is still there at its end is killed."""

    def __init__(self, queue: Sequence[int], blas_threads: int) -> None:
        self._queue = queue
        self._blas_threads = str(blas_threads)
        self._actors: list[Actor] = []
        self._undo = ExitStack()
        self._signals = _signals()

    def __enter__(self) -> Company:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def start(self, role: str, cpus: Cpus, **options: object) -> None:
        """A process that runs the module ``role`` with these options, on these CPUs."""
        command = [sys.executable, "-m", f"workloads.rl_sampling.{role}"]
        options |= {"parent": os.getpid(), "queue": numbers(self._queue)}
        for name, value in options.items():
            command += ["--" + name.replace("_", "-"), str(value)]
        output = self._undo.enter_context(tempfile.TemporaryFile("w+"))  # noqa: SIM115
        with pinned_to(cpus), _held_back(STOP_SIGNALS):
            process = subprocess.Popen(
                command,
                env=os.environ | dict.fromkeys(BLAS_VARIABLES, self._blas_threads),
                pass_fds=self._queue,
                process_group=0,  # Ctrl-C reaches us alone, and we stop them in order
                stdin=subprocess.DEVNULL,
                stdout=output,
                text=True,
            )
        self._undo.callback(_kill, process)
        self._actors.append(Actor(role, process, output))

    def watch(self, duration_s: float) -> Iterator[float]:
        """
        The seconds left, about each second, until SIGINT or SIGTERM comes or ``duration_s`` have
        passed since an actor said that it is ready; infinite before. Raises ActorError.
        """
        end = math.inf
        while (left := end - time.monotonic()) > 0:
            yield left
            received = self._received(min(TICK_S, left))
            if received & STOP_SIGNALS:
                return
            if READY_SIGNAL in received:
                end = time.monotonic() + duration_s
            self._expect_all_alive()

    def stop(self, role: str) -> list[Timed]:
        """Let all actors of a role finish their step. What they timed. Raises ActorError."""
        actors = [actor for actor in self._actors if actor.role == role]
        for actor in actors:
            actor.process.terminate()
        return [row for actor in actors for row in _finished(actor)]

    def _received(self, wait_s: float) -> set[int]:
        ready, _, _ = select.select([self._signals], [], [], wait_s)
        return set(os.read(self._signals, select.PIPE_BUF)) if ready else set()

    def _expect_all_alive(self) -> None:
        for actor in self._actors:
            if actor.process.poll() is not None:
                raise ActorError(f"{actor} ended early, {_how(actor.process.returncode)}")


def _signals() -> int:
    """
    A file that has a byte for each watched signal: none comes between a look and a sleep.

    Blocking them would not do: BLAS threads have masks of their own, and any one of them that
    takes the signal would end the process.
    """
    inbox, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wakeup)
    for number in WATCHED:
        signal.signal(number, lambda *_: None)
    return inbox


@contextmanager
def _held_back(signals: set[signal.Signals]) -> Iterator[None]:
    """For a process started in the block, until it asks: also those sent before it is ready."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


def numbers(several: Iterable[int]) -> str:
    """For a command line, as ``actor.numbers`` reads them."""
    return ",".join(map(str, several))


def _finished(actor: Actor) -> list[Timed]:
    try:
        code = actor.process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        raise ActorError(f"{actor} did not stop within {GRACE_S:g} s") from None
    if code != 0:
        raise ActorError(f"{actor} failed, {_how(code)}")
    actor.account.seek(0)
    return account.read(actor.account)


def _how(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
