"""Bursts of CPU work at random times: what gRPC threads and neighbours look like to a CPU."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

# Hashing a block releases the GIL for its 0.1 ms or so: the burst competes for the CPU, not for
# the interpreter.
_BLOCK = bytes(256 * 1024)


def burn(cpu_s: float) -> None:
    """Use this much CPU time, however long that takes."""
    until = time.thread_time() + cpu_s
    while time.thread_time() < until:
        hashlib.sha256(_BLOCK)


def at_random(per_second: float, work: Callable[[], object], seed: int) -> NoReturn:
    """Call ``work`` for ever, with exponential pauses of mean 1 / ``per_second``."""
    pauses = random.Random(seed)
    while True:
        time.sleep(pauses.expovariate(per_second))
        work()


def start_service_thread(index: int, per_second: float, burst_s: float) -> None:
    """A thread as gRPC servers have them. The kernel knows it as ``grpc-worker-<index>``."""

    def serve() -> NoReturn:
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
        at_random(per_second, lambda: burn(burst_s), seed=index)

    name = f"grpc-worker-{index}"
    threading.Thread(target=serve, name=name, daemon=True).start()
