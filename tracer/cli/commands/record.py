"""
Trace into a recording, until interrupted or for --duration seconds; print the report.

What is in the file survives kill -9 and a full disk, but for the last 10 s.
"""

from __future__ import annotations

import argparse
import sys
import time

from tracer.agent.agent import Agent
from tracer.agent.answers import in_report
from tracer.cli.console import every, print_report, say, until
from tracer.cli.options import Parser, add_config, add_duration, add_output, settings_of, text_of
from tracer.judge.words import count
from tracer.record.recorder import Recorder
from tracer.record.window import WINDOW_SECONDS


def add_options(sub: Parser) -> None:
    add_config(sub)
    add_output(sub)
    add_duration(sub)


def main(arguments: argparse.Namespace) -> int:
    settings = settings_of(arguments)
    text = text_of(arguments)
    with Agent(settings) as agent, Recorder(arguments.output, agent.meta(text)) as file:
        say(f"recording to {arguments.output}")
        begin, steps = time.monotonic(), 0

        def write() -> None:
            nonlocal steps
            window = agent.window()
            file.write(window)
            steps += window.steps
            if sys.stderr.isatty():
                say(progress(time.monotonic() - begin, arguments.duration, steps))

        agent.run(until(arguments.duration), every(WINDOW_SECONDS, write))
        last, summary = agent.last_window()
        file.write(last)
    return print_report(summary, arguments.json, in_report(agent.memory))


def progress(seconds: float, of: float | None, steps: int) -> str:
    """``2.5 of 30.0 minutes, 1,204 steps``"""
    whole = f" of {of / 60:.1f}" if of else ""
    return f"{seconds / 60:.1f}{whole} minutes, {count(steps, 'step')}"
