"""Options that several commands have."""

from __future__ import annotations

import argparse
from pathlib import Path

Parser = argparse.ArgumentParser


def add_config(sub: Parser) -> None:
    sub.add_argument("--config", type=Path, metavar="FILE", help="YAML, docs/configuration.md")


def add_recording(sub: Parser, help_: str = "else of this machine, now") -> None:
    sub.add_argument("recording", type=Path, nargs="?", help=help_)


def add_pids(sub: Parser) -> None:
    sub.add_argument(
        "--pid", type=int, action="append", metavar="PID", help="not the targets, but this"
    )


def add_output(sub: Parser) -> None:
    sub.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="a new file")


def add_duration(sub: Parser) -> None:
    sub.add_argument("--duration", type=seconds, metavar="SECONDS", help="then stop")


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value
