"""Programs that run beside a test, the real agent among them. None outlives the test run."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from exporters.server import Address

WORKLOAD = [sys.executable, "-m", "workloads.rl_sampling", "--duration", "600"]

_ENDS_WITH_US = ["setpriv", "--pdeathsig", "KILL", "--"]


@contextmanager
def running(*command: object, log: IO[str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """The program is told to end with the block, and killed with the test run."""
    program = [*_ENDS_WITH_US, *map(str, command)]
    with subprocess.Popen(program, stdout=log or subprocess.DEVNULL, stderr=log) as process:
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def running_agent(folder: Path, configuration: str = "") -> Iterator[Address]:
    """On a free port. Yields where it serves, once it traces."""
    file, ready = folder / "tailtrace.yaml", folder / "ready"
    file.write_text(f"listen: 127.0.0.1:0\n{configuration}")
    command = [sys.executable, "-m", "tracer.cli", "run", "--quiet", "--config", file]
    with running(*command, "--ready-file", ready):
        end = time.monotonic() + 30
        while not (ready.exists() and ready.read_text().endswith("\n")):
            assert time.monotonic() < end, "tailtrace did not get ready"
            time.sleep(0.05)
        host, port = ready.read_text().strip().rsplit(":", 1)
        yield host, int(port)
