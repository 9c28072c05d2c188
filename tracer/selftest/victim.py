"""A victim as its starter sees it."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, ClassVar

from tracer.errors import UnavailableError
from tracer.selftest.victims import GO

_PATIENCE = 30  # seconds; a victim works for three at most


class Victim:
    """
    A process that is ready, goes when told, and gives an account of itself.

    A context manager: it does not outlive the block, nor its starter. Raises UnavailableError
    when it cannot do here what it should, with its last words.
    """

    command: ClassVar[list[str]] = [sys.executable, "-m", "tracer.selftest.victims"]

    def __init__(self, what: str, *arguments: object) -> None:
        self.what = what
        self.process = subprocess.Popen(
            [*self.command, what, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,  # an interrupt from the terminal is ours to handle
        )
        self.pid = self.process.pid
        with ExitStack() as undo:
            undo.callback(self.kill)
            if self._line() != "ready\n":
                raise self._failure()
            undo.pop_all()

    def __enter__(self) -> Victim:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def go(self) -> None:
        self.process.send_signal(GO)

    def account(self, free: Callable[[], object] = lambda: None) -> dict[str, Any]:
        """
        See ``tracer.selftest.victims.serve``; waits for the end.

        :param free: is called when the work is done, so that nothing happens to its end
        """
        if self._line() != "done\n":
            raise self._failure()
        free()
        self.go()
        line = self._line()
        if not line or self.process.wait():
            raise self._failure()
        account: dict[str, Any] = json.loads(line)
        return account

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def _line(self) -> str:
        """What it says next; empty when it has ended."""
        out = self.process.stdout
        assert out is not None
        if not select.select([out], [], [], _PATIENCE)[0]:
            raise UnavailableError(f"the victim `{self.what}` says nothing for {_PATIENCE} s")
        return out.readline()

    def _failure(self) -> UnavailableError:
        assert self.process.stderr is not None
        words = self.process.stderr.read().strip().rpartition("\n")[2] or "it said nothing"
        return UnavailableError(f"the victim `{self.what}` ended early: {words}")
