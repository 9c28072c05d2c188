"""How long it takes from a Python that is up to a tracer that is attached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.spread import Spread
from bench.table import Row, Section

_BUDGET_MS = 300.0
_METHOD = (
    "`tailtrace run` in a new Python each time, its modules compiled, as pip installs them: from "
    "the first statement to all programs loaded and attached, with the default configuration. The "
    "start of the interpreter is not in it. CPU time is that of both threads: one imports while "
    "the other loads."
)
_PROGRAM = """
import sys, time
began, cpu = time.perf_counter(), time.process_time()
from tracer import cli
from tracer.kernel.trace import KernelTrace

attach = KernelTrace.__enter__

def attach_and_leave(kernel):
    attach(kernel)
    print([(time.perf_counter() - began) * 1e3, (time.process_time() - cpu) * 1e3])
    sys.exit()

KernelTrace.__enter__ = attach_and_leave
cli.main(["run"])
"""


def measure(rounds: int, say: Callable[[str], None]) -> Section:
    say(f"start: {rounds} starts")
    with TemporaryDirectory(prefix="tailtrace-bench-") as compiled:
        _start(Path(compiled))
        wall, cpu = zip(*(_start(Path(compiled)) for _ in range(rounds)), strict=True)
    return Section(
        "Start",
        _METHOD,
        [
            Row("start to attached", "ms", Spread.quartiles(wall), _BUDGET_MS),
            Row("CPU time of it", "ms", Spread.quartiles(cpu)),
        ],
    )


def _start(compiled: Path) -> tuple[float, float]:
    """Wall and CPU time in ms; modules are compiled into that folder unless they are there."""
    environment = os.environ | {
        "PYTHONPYCACHEPREFIX": str(compiled),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, check=True
    )
    wall, cpu = json.loads(done.stdout)
    return wall, cpu
