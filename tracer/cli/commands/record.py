"""
Trace into a recording, until interrupted or for --duration seconds; print the report.

What is in the file survives kill -9 and a full disk, but for the last 10 s.
"""

from __future__ import annotations

import argparse

from tracer.agent.agent import Agent
from tracer.agent.answers import in_report
from tracer.cli.console import every, print_report, say, settings_of, text_of, until
from tracer.cli.options import Parser, add_config, add_duration, add_output
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
        write = every(WINDOW_SECONDS, lambda: file.write(agent.window()))
        agent.run(until(arguments.duration), write)
        last, summary = agent.last_window()
        file.write(last)
    return print_report(summary, arguments.json, in_report(agent.memory))
