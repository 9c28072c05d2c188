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
from tracer.cli.console import print_json, say, settings_of, until
from tracer.cli.options import Parser, add_config, add_duration, add_output, add_recording
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
    seen: list[Steps] = []
    waits: list[tuple[Records, NDArray[np.int32]]] = []
    names: dict[int, str] = {}
    with (
        Agent(settings, seen.append, lambda *each: waits.append(each)) as agent,
        PerfettoTrace(arguments.output, time.monotonic_ns(), time.time_ns()) as trace,
    ):
        drawing = Drawing(agent.totals, lambda index: names.get(index, f"process {index}"))

        drawn_stalls = 0

        def draw() -> None:
            """All of a second at once: what is left out is decided by the second."""
            nonlocal drawn_stalls
            names.update({target.index: f"{target.name} {target.pid}" for target in agent.targets})
            if seen:
                trace.add(drawing.of_steps(Steps.concatenate(seen)))
            if waits:
                outliers, tenants = zip(*waits, strict=True)
                trace.add(drawing.of_outliers(join_records(outliers), np.concatenate(tenants)))
            trace.add(drawing.of_stalls(agent.totals.stalls.since(drawn_stalls)))
            drawn_stalls = agent.totals.stalls.number
            seen.clear()
            waits.clear()

        agent.run(until(arguments.duration), draw)
        draw()
        return trace.drawn, drawing.left_out + trace.left_out


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
