"""Options that several commands have, and what they say."""

from __future__ import annotations

import argparse
from pathlib import Path

from tracer import config
from tracer.config import Config

Parser = argparse.ArgumentParser

_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600}


def add_config(sub: Parser) -> None:
    sub.add_argument("--config", type=Path, metavar="FILE", help="YAML, docs/configuration.md")


def settings_of(arguments: argparse.Namespace) -> Config:
    return config.load(arguments.config) if arguments.config else Config()


def text_of(arguments: argparse.Namespace) -> str:
    """Of the configuration file; empty without one."""
    return str(arguments.config.read_text()) if arguments.config else ""


def add_recording(sub: Parser, help_: str = "else of this machine, now") -> None:
    sub.add_argument("recording", type=Path, nargs="?", help=help_)


def add_pids(sub: Parser) -> None:
    sub.add_argument(
        "--pid", type=_pid, action="append", metavar="PID", help="not the targets, but this"
    )


def add_output(sub: Parser) -> None:
    sub.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="a new file")


def add_duration(sub: Parser) -> None:
    sub.add_argument("--duration", type=seconds, metavar="TIME", help="then stop: 90, 30m or 2h")


def seconds(text: str) -> float:
    """In seconds, minutes (``m``) or hours (``h``)."""
    number, unit = (text[:-1], text[-1]) if text.endswith(tuple(_UNIT_SECONDS)) else (text, "s")
    try:
        value = float(number) * _UNIT_SECONDS[unit]
    except ValueError:
        value = 0.0
    if not 0 < value <= 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is no time above 0, such as 90, 30m or 2h")
    return value


def _pid(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:10]) < 1 << 31):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a process")
    return int(text)
