"""
Print where the tail went, and who took it: of a recording, or of the agent that runs here.
"""

from __future__ import annotations

import argparse

from tracer.cli.console import print_report, recorded_memory, recording_of
from tracer.cli.options import Parser, add_config, add_recording
from tracer.record.recording import Recording


def add_options(sub: Parser) -> None:
    add_config(sub)
    add_recording(sub, "else the history of the agent that runs here")


def main(arguments: argparse.Namespace) -> int:
    with Recording.open(recording_of(arguments)) as recording:
        summary, memory = recording.summary(), recorded_memory(recording)
    return print_report(summary, arguments.json, memory)
