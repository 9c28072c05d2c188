"""
Reads a recording, also one that is being written or that was left by a process that was killed.

A file from elsewhere is a stranger's: what it says is bounded and checked before it is used.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from tracer.errors import UsageError
from tracer.ledger.summarise import slow_steps, summarise
from tracer.ledger.summary import SlowStep, Summary
from tracer.ledger.totals import Totals
from tracer.record.recorder import ENDED
from tracer.record.replay import Events, events, find, replay
from tracer.record.rows import read_answers, read_meta, read_window
from tracer.record.schema import APPLICATION_ID, TABLES_OF, VERSION
from tracer.record.window import WINDOW_SECONDS, Answer, Window
from tracer.targets.text import visible

_DAMAGES = (
    *(sqlite3.DatabaseError, zlib.error, msgspec.MsgspecError),
    *(ValueError, OverflowError, RecursionError),
)
_SHOWN = 200  # characters of what is wrong


class Recording:
    """A context manager. Whatever is wrong with the file is a UsageError, whenever it is found."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._undo = contextlib.ExitStack()

    @classmethod
    def open(cls, path: Path) -> Recording:
        """What is in the file now: windows that are written later are not seen."""
        recording = cls(path)
        with contextlib.ExitStack() as unless_opened, recording._readable():
            unless_opened.push(recording)
            recording._open()
            unless_opened.pop_all()
        return recording

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def _open(self) -> None:
        try:
            with self.path.open("rb") as file:
                if not file.read(1):
                    raise UsageError(f"{self.path}: is empty; record again")
        except OSError as e:
            raise UsageError(f"{self.path}: {e.strerror}; give a recording") from e
        # Without a log beside it nobody writes; then it may lie where nothing can be written.
        alone = not self.path.with_name(f"{self.path.name}-wal").exists()
        uri = f"file:{quote(str(self.path))}?mode=ro{'&immutable=1' if alone else ''}"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        self._database = self._undo.enter_context(contextlib.closing(connection))
        self._check_kind()
        self._database.execute("BEGIN")  # one state of the file, while a recorder goes on
        about = dict(self._rows("SELECT key, value FROM meta"))
        self.ended_unix_ns = int(about.pop(ENDED)) if ENDED in about else None
        self.meta = read_meta(about)

    @property
    def closed_properly(self) -> bool:
        """Whether its recorder ended by itself; else the last window may be missing."""
        return self.ended_unix_ns is not None

    def unix_seconds(self, ns: int) -> float:
        """The wall clock's time when the monotonic clock showed ``ns``, as of the beginning."""
        return (self.meta.started_unix_ns + ns - self.meta.started_ns) / 1e9

    @property
    def last(self) -> int:
        """Number of the last window, from 1; 0 where there is none yet."""
        return max(self._numbers(), default=0)

    @property
    def dropped(self) -> int:
        """Windows that were dropped to make room for later ones."""
        first = self._numbers()[:1]
        return first[0] - 1 if first else 0

    def windows(self, last: int = 0) -> Iterator[Window]:
        """Oldest first, one at a time in memory; only so many of the last ones when given."""
        for number in self._numbers()[-last:]:
            with self._readable():
                window = read_window(self._database, number, self.meta, self._version)
            yield window

    def totals(self, slowest_of: int | None = None) -> tuple[Totals, Counter[str], int]:
        """
        The totals of the agent when the last window ended, what was lost, and when that was.

        :param slowest_of: the slowest steps are those of so many last seconds; as the agent when
            not given
        """
        with self._readable():
            return replay(self.windows(), self.meta, slowest_of or self.meta.window_seconds)

    def summary(self, slowest_of: int | None = None) -> Summary:
        """What the agent told when the last window ended; ``slowest_of`` as in ``totals``."""
        return summarise(*self.totals(slowest_of))

    def slow_steps(self, number: int) -> tuple[SlowStep, ...]:
        """Those with this number, and their stages: the longest first."""
        with self._readable():
            found = slow_steps(*find(self.windows(), self.meta, number))
        return tuple(sorted(found, key=lambda step: -step.elapsed))

    def latest(self) -> Summary:
        """Of the last window alone."""
        with self._readable():
            return summarise(*replay(self.windows(last=1), self.meta, WINDOW_SECONDS))

    def answers(self) -> dict[str, Answer]:
        """By command, what it said last."""
        with self._readable():
            return read_answers(self._database) if self._version > 1 else {}

    def events(self) -> tuple[Totals, Iterator[Events]]:
        """Window by window the slow steps and long deschedules, and totals that know names."""
        return events(self.windows(), self.meta)

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGES as e:
            what = visible(str(e).encode(), _SHOWN)
            raise UsageError(
                f"{self.path}: is no readable recording: {what}; copy it whole, together with its "
                f"-wal file if there is one, or record again"
            ) from e

    def _check_kind(self) -> None:
        application, version = (
            self._database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        )
        if application != APPLICATION_ID:
            raise UsageError(f"{self.path}: is another program's; give a recording of tailtrace")
        if version > VERSION:
            raise UsageError(
                f"{self.path}: has schema {version}, newer than {VERSION}; read it with the "
                f"tailtrace that recorded it, or a later one"
            )
        tables = self._rows("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
        if sorted(sql for (sql,) in tables) != sorted(TABLES_OF.get(version, ())):
            raise ValueError("its tables are not those of its schema")
        self._version = int(version)

    def _numbers(self) -> list[int]:
        with self._readable():
            return [number for (number,) in self._rows("SELECT number FROM window ORDER BY number")]

    def _rows(self, sql: str, *values: object) -> list[Any]:
        return self._database.execute(sql, values).fetchall()
