"""
The live state of this node, for the page that people look at.

What costs the agent time is done only while somebody looks: a request asks for a publishing, the
agent makes one the next time that it comes by, and the thread of the request writes it out.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from exporters.history import History
from exporters.plots import plots
from tracer.model import Family

FRESH_SECONDS = 4.0
"""For so long everybody gets the same answer, however many ask."""

PATIENCE_SECONDS = 3.0
"""That a request waits for the agent, which comes by once a second."""

_LONGEST = 400
"""Characters of any one text."""


class Live:
    """Fed by the agent's thread, read by those of requests."""

    def __init__(
        self,
        node: str,
        fresh_seconds: float = FRESH_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._node, self._fresh, self._patience = node, fresh_seconds, patience_seconds
        self._history = History()
        self._answered = threading.Condition()
        self._wanted = False
        self._edition: _Edition | None = None

    def record(self, families: Iterable[Family]) -> None:
        """Note by how much counters grew. Called with everything that is published."""
        self._history.add(families, time.monotonic())

    @property
    def wanted(self) -> bool:
        """Whether somebody waits for :meth:`publish`."""
        return self._wanted

    def publish(self, describe: Callable[[], Mapping[str, Any]]) -> None:
        """
        Answer those who wait.

        :param describe: gives plain data for JSON; called later, from the thread of a request
        """
        now, unix, past = time.monotonic(), time.time(), self._history.past()
        edition = _Edition(
            now,
            lambda: {
                "node": self._node,
                "unix": unix,
                "fresh_seconds": self._fresh,
                **describe(),
                "plots": plots(past, unix - now),
            },
        )
        with self._answered:
            self._edition, self._wanted = edition, False
            self._answered.notify_all()

    def read(self) -> bytes:
        """JSON, as of a few seconds ago at most; empty when the agent does not come by."""
        with self._answered:
            edition = self._edition
            if edition is None or time.monotonic() - edition.made > self._fresh:
                self._wanted = True
                came_by = self._answered.wait_for(lambda: not self._wanted, self._patience)
                edition = self._edition if came_by else None
        return edition.read() if edition else b""


class _Edition:
    """One publishing, written out by the first who reads it."""

    def __init__(self, made: float, describe: Callable[[], Mapping[str, Any]]) -> None:
        self.made = made
        self._describe = describe
        self._writing = threading.Lock()
        self._body = b""

    def read(self) -> bytes:
        with self._writing:
            if not self._body:
                described = _fit(self._describe())
                self._body = json.dumps(described, separators=(",", ":"), allow_nan=False).encode()
            return self._body


def _fit(value: Any) -> Any:
    """The same with every text fit to be shown: names in them are strangers' own."""
    if isinstance(value, str):
        return _shown(value)
    if isinstance(value, Mapping):
        return {_fit(key): _fit(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_fit(each) for each in value]
    return value


def _shown(text: str) -> str:
    """At most _LONGEST characters, and those that do not print (direction marks) as escapes."""
    if not text.isprintable():
        text = "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:_LONGEST]
        )
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
