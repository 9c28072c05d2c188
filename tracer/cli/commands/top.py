"""
Show what is going on, over and over: the last seconds, traced for as long as it is shown.

With a recording that is being written, the last 10 s of that instead.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tracer.agent.agent import Agent
from tracer.cli.console import every, print_lines, until
from tracer.cli.options import Parser, add_config, add_duration, add_recording, seconds, settings_of
from tracer.judge import report
from tracer.ledger.summarise import summarise
from tracer.ledger.summary import Summary
from tracer.record.recording import Recording
from tracer.record.replay import replay

_LOOK_SECONDS = 1  # how soon a window that was written is seen


def add_options(sub: Parser) -> None:
    add_config(sub)
    add_recording(sub, "one that is being written")
    sub.add_argument(
        "--interval", type=seconds, default=2.0, metavar="SECONDS", help="2 when not given"
    )
    add_duration(sub)


def main(arguments: argparse.Namespace) -> int:
    show = partial(_show, arguments.json)
    stopped = until(arguments.duration)
    if arguments.recording:
        _follow(arguments.recording, show, stopped)
        return 0
    with Agent(settings_of(arguments)) as agent:
        meta, span = agent.meta(configuration=""), math.ceil(arguments.interval)

        def latest() -> None:
            show(summarise(*replay([agent.window()], meta, span)))

        agent.run(stopped, every(arguments.interval, latest))
    return 0


def _follow(path: Path, show: Callable[[Summary], None], stopped: Callable[[], bool]) -> None:
    """Show each window that a recorder writes, until it ends."""
    shown = 0
    while not stopped():
        with Recording.open(path) as recording:
            if recording.last != shown:
                show(recording.latest())
                shown = recording.last
            if recording.closed_properly:
                return
        time.sleep(_LOOK_SECONDS)


def _show(as_json: bool, summary: Summary) -> None:
    """In place of what was shown before, where that is possible; JSON takes one line each."""
    if as_json:
        print(json.dumps(report.as_dict(summary)), flush=True)
        return
    if sys.stdout.isatty():
        print("\x1b[H\x1b[J", end="")  # cursor home, erase from there on
    print_lines([*report.top(summary), ""])
