"""What an engine pays for marking a step."""

from __future__ import annotations

import subprocess
import timeit
from collections.abc import Callable

import stepmark
from bench.load import compiled
from bench.spread import Spread
from bench.table import Row, Section

_STEPS = 50_000
_METHOD = (
    "A step that does nothing, begun and ended by one thread, tens of thousands of times over: "
    "`with step:` in Python, `stepmark_begin()` and `stepmark_end()` in C; the fastest of several "
    "runs each round, because only the machine makes one slower; median and quartiles over the "
    "rounds. Each step reads the clock twice."
)


def measure(rounds: int, say: Callable[[str], None]) -> Section:
    say(f"marks: {rounds} rounds")
    python = [_python_us() for _ in range(rounds)]
    with compiled("marks") as program:
        c = [_c_ns(str(program)) for _ in range(rounds)]
    step, clock = zip(*c, strict=True)
    return Section(
        "Marks",
        _METHOD,
        [
            Row("a step in Python", "us", Spread.quartiles(python), 1.0),
            Row("a step in C", "ns", Spread.quartiles(step), 50.0),
            Row("of these, reading the clock twice", "ns", Spread.quartiles(clock)),
        ],
    )


def _python_us() -> float:
    """Without the loop around it."""
    step = stepmark.step("decode", tenants="chat")
    marked = timeit.repeat("with step: pass", globals={"step": step}, number=_STEPS)
    return (min(marked) - min(timeit.repeat("pass", number=_STEPS))) / _STEPS * 1e6


def _c_ns(program: str) -> tuple[float, float]:
    """A step, and reading the clock twice."""
    step, clock = subprocess.run([program], capture_output=True, check=True).stdout.split()
    return float(step), float(clock)
