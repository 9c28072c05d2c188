"""What every process of the workload does first, and how it learns that it shall end."""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import signal
import sys
from pathlib import Path

STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}
READY_SIGNAL = signal.SIGUSR1
_PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The command line that all actors share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--parent", type=int, required=True, help="pid; the actor dies with it")
    parser.add_argument("--queue", type=numbers, default=[], help="inherited file descriptors")
    return parser


def begin(comm: str, parent: int) -> None:
    """
    Take the name, die when the parent dies, and hold stop signals back until ``stopping`` asks.

    Being killed outright is safe: no actor owns anything that outlives it.
    """
    Path("/proc/self/comm").write_text(comm)
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    gc.disable()  # nothing here makes cycles, and a collection would be some step's tail
    if os.getppid() != parent:  # it died before we asked to be told
        sys.exit(1)


def ready(parent: int) -> None:
    """Tell the parent that the run's time may begin to count."""
    os.kill(parent, READY_SIGNAL)


def stopping() -> bool:
    """Whether a stop signal is waiting. Between steps only: a step is never torn."""
    return not STOP_SIGNALS.isdisjoint(signal.sigpending())


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]
