"""What the commands share: how long they go on, and how they say something."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tracer.cli.options import settings_of
from tracer.errors import UnavailableError, UsageError
from tracer.judge import report as reporter
from tracer.ledger.summary import Summary
from tracer.record.recording import Recording
from tracer.record.window import REPORT_MEMORY, Answer


def recording_of(arguments: argparse.Namespace) -> Path:
    """The one that is given, else the recent history of the agent that runs here."""
    if arguments.recording:
        return Path(arguments.recording)
    history = settings_of(arguments).history
    if history.file is None:
        raise UsageError(f"{arguments.config}: history.directory is empty; give a recording")
    if not history.file.exists():
        raise UsageError(
            f"{history.file}: no agent has left its history there; give a recording, or start "
            "`tailtrace run`"
        )
    return history.file


def until(seconds: float | None) -> Callable[[], bool]:
    """Whether the time is over, or somebody asked to stop."""
    end = time.monotonic() + seconds if seconds else float("inf")
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: asked.append(received))
    return lambda: bool(asked) or time.monotonic() >= end


def every(seconds: float, do: Callable[[], None], at_once: bool = False) -> Callable[[], None]:
    """What is called more often does something every so many seconds."""
    due = time.monotonic() + (0 if at_once else seconds)

    def maybe() -> None:
        nonlocal due
        if time.monotonic() >= due:
            due += seconds
            do()

    return maybe


def say(words: str) -> None:
    """Progress, which is nobody's result."""
    print(f"tailtrace: {words}", file=sys.stderr)


def print_lines(lines: Iterable[str]) -> None:
    print("\n".join(lines), flush=True)


def print_json(value: object) -> None:
    json.dump(value, sys.stdout, indent=2)
    print()


def recorded_memory(recording: Recording) -> Answer:
    """What a report says of it, as it was seen last."""
    return recording.answers().get(REPORT_MEMORY, Answer(None, ()))


def print_report(summary: Summary, as_json: bool, memory: Answer) -> int:
    """``memory`` is what is said of it."""
    if as_json:
        print_json(reporter.as_dict(summary) | {"memory": memory.value})
    else:
        print_lines([*reporter.report(summary), *memory.lines])
    return 0


def print_answer(recording: Path, command: str, as_json: bool) -> int:
    """What the command said where, and when, the recording was made."""
    with Recording.open(recording) as recorded:
        answer = recorded.answers().get(command)
    if answer is None:
        raise UnavailableError(
            f"{recording}: has no answer of `tailtrace {command}`; `tailtrace check {recording}` "
            "says what could be told there"
        )
    if as_json:
        print_json(answer.value)
    else:
        print_lines(answer.lines)
    return answer.exit_code


def write_file(path: Path, content: str) -> None:
    try:
        path.write_text(content)
    except OSError as e:
        why = e.strerror
        raise UsageError(f"{path}: {why}; give a place that can be written") from e
