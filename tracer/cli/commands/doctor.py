"""
Say what this machine is, what on it lengthens tails or misleads, and which remedies can work.

With --tail, the recording of a run on this machine, also what carries its tail, and remedies
for that. Exits with 1 when something makes measurements of this machine misleading. With a
recording it is what this said where that was made.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tracer.cli.console import print_answer, print_json, print_lines
from tracer.cli.options import Parser, add_config, add_pids, add_recording, settings_of
from tracer.cli.targets import processes_of
from tracer.judge import doctor
from tracer.record.recording import Recording
from tracer.record.window import DOCTOR, DOCTOR_FULL


def add_options(sub: Parser) -> None:
    add_config(sub)
    add_recording(sub)
    sub.add_argument("--full", action="store_true", help="more than a screen: every detail")
    add_pids(sub)
    sub.add_argument(
        "--tail", type=Path, metavar="RECORDING", help="made here: also remedies for its tail"
    )


def main(arguments: argparse.Namespace) -> int:
    if arguments.recording:
        command = DOCTOR_FULL if arguments.full else DOCTOR
        return print_answer(arguments.recording, command, arguments.json)
    targets = processes_of(settings_of(arguments)).scan().new
    pids = arguments.pid or [target.pid for target in targets]
    measured = None
    if arguments.tail:
        with Recording.open(arguments.tail) as recording:
            measured = recording.summary()
    found = doctor.examine(pids=pids, measured=measured)
    if arguments.json:
        print_json(doctor.as_dict(found))
    else:
        print_lines(doctor.as_lines(found, arguments.full))
    return 1 if found.misleading else 0
