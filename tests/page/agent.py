"""The real agent on a free port, and programs beside it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from exporters.server import Address

WORKLOAD = [sys.executable, "-m", "workloads.rl_sampling", "--duration", "600"]


@contextmanager
def running(command: Sequence[str]) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


@contextmanager
def running_agent(folder: Path) -> Iterator[Address]:
    """Yields where it serves, once it traces."""
    configuration, ready = folder / "tailtrace.yaml", folder / "ready"
    configuration.write_text("listen: 127.0.0.1:0\n")
    command = [sys.executable, "-m", "tracer.cli", "run", "--quiet", "--config", configuration]
    with running([*map(str, command), "--ready-file", str(ready)]):
        end = time.monotonic() + 30
        while not (ready.exists() and ready.read_text().endswith("\n")):
            assert time.monotonic() < end, "tailtrace did not get ready"
            time.sleep(0.05)
        host, port = ready.read_text().strip().rsplit(":", 1)
        yield host, int(port)
