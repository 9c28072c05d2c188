"""How long it takes from a Python that is up to a tracer that is attached."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

from bench.spread import Spread
from bench.table import Row, Section

_BUDGET_MS = 300.0
_METHOD = (
    "In a new Python each time: from the first statement to the end of the imports that "
    "`tailtrace run` needs, and from there to all programs loaded and attached, with the default "
    "configuration. The start of the interpreter is not in it."
)
_PROGRAM = """
import time
began = time.perf_counter()
import tracer.cli
from tracer.cli.commands import run
from tracer.agent.agent import Agent
from tracer.config import Config
imported = time.perf_counter()
with Agent(Config()):
    attached = time.perf_counter()
print([(imported - began) * 1e3, (attached - imported) * 1e3])
"""


def measure(rounds: int, say: Callable[[str], None]) -> Section:
    say(f"start: {rounds} starts")
    times = [_start() for _ in range(rounds)]
    imports, attach = zip(*times, strict=True)
    return Section(
        "Start",
        _METHOD,
        [
            Row("imports", "ms", Spread.quartiles(imports)),
            Row("load and attach", "ms", Spread.quartiles(attach)),
            Row("start to attached", "ms", Spread.quartiles([sum(t) for t in times]), _BUDGET_MS),
        ],
    )


def _start() -> tuple[float, float]:
    """Imports and attaching, in ms."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, check=True)
    imports, attach = json.loads(done.stdout)
    return imports, attach
