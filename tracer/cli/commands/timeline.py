"""
Draw steps, causes, long deschedules and stalls by thread and CPU, for https://ui.perfetto.dev.

Traces until interrupted or for --duration seconds; or draws what a recording has of single
steps, the slowest ones.
"""

from __future__ import annotations

import argparse
import time

import msgspec
import numpy as np
from numpy.typing import NDArray

from exporters.perfetto import PerfettoTrace
from tracer.agent.agent import Agent
from tracer.cli.console import print_json, say, until
from tracer.cli.options import (
    Parser,
    add_config,
    add_duration,
    add_output,
    add_recording,
    settings_of,
)
from tracer.ledger.spans import Drawing
from tracer.model import Records, Steps, join_records
from tracer.record.recording import Recording

_OUTLIER_MS = 0.1  # deschedules are drawn from this long on


def add_options(sub: Parser) -> None:
    add_config(sub)
    add_recording(sub, "instead of what goes on now")
    add_output(sub)
    add_duration(sub)


def main(arguments: argparse.Namespace) -> int:
    drawn, left_out = (_recorded if arguments.recording else _live)(arguments)
    if arguments.json:
        print_json({"drawn": drawn, "left_out": left_out})
    else:
        say(f"{drawn:,} spans in {arguments.output}, {left_out:,} shorter ones left out")
    return 0


def _live(arguments: argparse.Namespace) -> tuple[int, int]:
    settings = settings_of(arguments)
    settings = msgspec.structs.replace(settings, outlier_ms=min(settings.outlier_ms, _OUTLIER_MS))
    second = _Second()
    with (
        Agent(settings, second.steps.append, second.add_waits) as agent,
        PerfettoTrace(arguments.output, time.monotonic_ns(), time.time_ns()) as trace,
    ):
        drawing = Drawing(agent.totals, second.process_name)
        agent.run(until(arguments.duration), lambda: second.draw(agent, drawing, trace))
        second.draw(agent, drawing, trace)
        return trace.drawn, drawing.left_out + trace.left_out


class _Second:
    """What came since the last drawing. It is drawn at once: what is left out is decided by the
    second."""

    def __init__(self) -> None:
        self.steps: list[Steps] = []
        self._waits: list[tuple[Records, NDArray[np.int32]]] = []
        self._names: dict[int, str] = {}
        self._drawn_stalls = 0

    def add_waits(self, outliers: Records, tenants: NDArray[np.int32]) -> None:
        self._waits.append((outliers, tenants))

    def process_name(self, index: int) -> str:
        return self._names.get(index, f"process {index}")

    def draw(self, agent: Agent, drawing: Drawing, trace: PerfettoTrace) -> None:
        self._names |= {target.index: f"{target.name} {target.pid}" for target in agent.targets}
        if self.steps:
            trace.add(drawing.of_steps(Steps.concatenate(self.steps)))
        if self._waits:
            outliers, tenants = zip(*self._waits, strict=True)
            trace.add(drawing.of_outliers(join_records(outliers), np.concatenate(tenants)))
        stalls = agent.totals.stalls
        trace.add(drawing.of_stalls(stalls.since(self._drawn_stalls)))
        self._drawn_stalls = stalls.number
        self.steps.clear()
        self._waits.clear()


def _recorded(arguments: argparse.Namespace) -> tuple[int, int]:
    with Recording.open(arguments.recording) as recording:
        meta = recording.meta
        with PerfettoTrace(arguments.output, meta.started_ns, meta.started_unix_ns) as trace:
            totals, events = recording.events()
            drawing = Drawing(totals, "process {}".format)
            for steps, outliers, tenants, stalls in events:
                trace.add(drawing.of_steps(steps))
                trace.add(drawing.of_outliers(outliers, tenants))
                trace.add(drawing.of_stalls(stalls))
            return trace.drawn, drawing.left_out + trace.left_out
