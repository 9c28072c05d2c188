"""
Explain one slow step in full: its ledger beside the median step's, and who had the CPU.

From a recording, or from the history of the agent that runs here. Of every kind the slowest
steps are recorded. Exits with 3 when this one is not among them. Where memory is, is as it was
seen last.
"""

from __future__ import annotations

import argparse

from tracer.cli.commands import report
from tracer.cli.console import print_json, print_lines, recorded_memory, recording_of
from tracer.cli.options import Parser
from tracer.errors import UnavailableError
from tracer.judge.explain import as_dict, in_full
from tracer.record.recording import Recording

_DIGITS = 20  # of a 64-bit number


def add_options(sub: Parser) -> None:
    sub.add_argument("step", type=_number, metavar="STEP", help="its number, from the report")
    report.add_options(sub)


def main(arguments: argparse.Namespace) -> int:
    with Recording.open(recording_of(arguments)) as recording:
        steps, memory = recording.slow_steps(arguments.step), recorded_memory(recording)
        ended = [recording.unix_seconds(step.end_ns) for step in steps]
    if not steps:
        raise UnavailableError(
            f"step {arguments.step}: is not among the slowest of its kind, which alone are "
            f"recorded whole; `tailtrace report` names some"
        )
    if arguments.json:
        print_json(list(map(as_dict, steps, ended)))
    else:
        texts = map("\n".join, map(in_full, steps, ended))
        print_lines([*"\n\n\n".join(texts).splitlines(), *memory.lines])
    return 0


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a step")
    return int(text)
