"""What the lab's commands say beside their results: on standard error."""

from __future__ import annotations

import sys

from tracer.errors import TailtraceError


def say(text: str) -> None:
    print(f"lab: {text}", file=sys.stderr, flush=True)


def told(error: TailtraceError) -> int:
    """Say what went wrong, with the notes on it. Returns the exit code."""
    say("\n".join([str(error), *getattr(error, "__notes__", [])]))
    return error.exit_code
