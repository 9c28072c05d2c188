"""The processes of a run: started, watched, and stopped so that nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO

from workloads.rl_sampling import account
from workloads.rl_sampling.account import Timed
from workloads.rl_sampling.actor import STOP_SIGNALS
from workloads.rl_sampling.pinning import Cpus, pinned_to

GRACE_S = 5.0
"""For an actor to finish its step and write its account."""

TICK_S = 1.0

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
        # Signals wait until they are asked for, so none comes between a look and a sleep. Actors
        # inherit this: a stop that comes before an actor is ready waits for it as well.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS | {signal.SIGCHLD})

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
        with pinned_to(cpus):
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
        The seconds since the start, about each second, until the time is over or SIGINT or SIGTERM
        comes. Raises ActorError.
        """
        begin = time.monotonic()
        while (elapsed := time.monotonic() - begin) < duration_s:
            yield elapsed
            wait_s = min(TICK_S, duration_s - elapsed)
            received = signal.sigtimedwait(STOP_SIGNALS | {signal.SIGCHLD}, wait_s)
            if received and received.si_signo in STOP_SIGNALS:
                return
            for actor in self._actors:
                if actor.process.poll() is not None:
                    raise ActorError(f"{actor} ended early, {_how(actor.process.returncode)}")

    def stop(self, role: str) -> list[Timed]:
        """Let all actors of a role finish their step. What they timed. Raises ActorError."""
        actors = [actor for actor in self._actors if actor.role == role]
        for actor in actors:
            actor.process.terminate()
        return [row for actor in actors for row in _finished(actor)]


def _kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


def numbers(several: Iterable[int]) -> str:
    """As ``actor.numbers`` reads them."""
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
