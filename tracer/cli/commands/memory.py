"""
Say on which NUMA nodes the targets' memory is, against where their threads run.

Exits with 1 when something is misplaced, with 3 where nodes cannot be told. With --watch the
last window decides, and those before it are what is usual. With a recording it is what the
agent saw last.
"""

from __future__ import annotations

import argparse
import time

from tracer.agent.memory import Memory
from tracer.cli.console import print_answer, print_json, print_lines, until
from tracer.cli.options import Parser, add_config, add_pids, add_recording, seconds, settings_of
from tracer.cli.targets import processes_of, target_of
from tracer.errors import UnavailableError
from tracer.host.machine import Machine
from tracer.judge import memory as memory_report
from tracer.judge.misplaced import misplaced
from tracer.judge.placement import Placement
from tracer.record.window import MEMORY


def add_options(sub: Parser) -> None:
    add_config(sub)
    add_recording(sub)
    sub.add_argument(
        "--seconds", type=seconds, default=2.0, metavar="S", help="length of a window [2]"
    )
    sub.add_argument("--watch", action="store_true", help="window after window, until interrupted")
    add_pids(sub)


def main(arguments: argparse.Namespace) -> int:
    if arguments.recording:
        return print_answer(arguments.recording, MEMORY, arguments.json)
    settings = settings_of(arguments)
    figures = Memory.here(settings, Machine.read(), arguments.seconds, pace=0)
    if not figures.capability.available:
        raise UnavailableError(f"no telling where memory is: {figures.capability.reason}")
    targets, processes = [target_of(pid) for pid in arguments.pid or ()], processes_of(settings)
    stopped = until(None)
    while not stopped():
        if not arguments.pid:
            changes = processes.scan()
            targets = [each for each in targets if each not in changes.gone] + changes.new
        if placement := figures.tick(targets):
            _print_placement(placement, arguments.json)
            if not arguments.watch:
                break
        # One process's memory is looked at in each turn: time for all of them, and some to spare.
        time.sleep(arguments.seconds / max(40, 2 * len(targets)))
    if figures.placement is None:
        raise UnavailableError("interrupted before the first window ended")
    return 1 if any(misplaced(figures.placement)) else 0


def _print_placement(placement: Placement, as_json: bool) -> None:
    if as_json:
        print_json(memory_report.as_dict(placement))
    else:
        print_lines([*memory_report.as_lines(placement), ""])
