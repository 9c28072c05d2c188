"""
Writes a recording. One window is one transaction: a reader finds all of it or nothing.

The file is in WAL mode with ``synchronous=NORMAL``. What was written survives the death of the
process at any moment; after a power cut the windows since the last checkpoint may be gone, never
the file.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from tracer.catalog import CAUSES
from tracer.errors import TailtraceError, UsageError
from tracer.record.cells import pack, pack_profile
from tracer.record.meta import Meta
from tracer.record.schema import APPLICATION_ID, TABLES, VERSION
from tracer.record.window import Window

ENDED = "ended_unix_ns"
"""The key in ``meta`` of a recording that was closed properly."""

_WAL_BYTES = 4 << 20
_DROP_ANSWERS = """DELETE FROM answer WHERE window < (SELECT min(number) FROM window) AND EXISTS (
    SELECT 1 FROM answer AS later WHERE later.command = answer.command
    AND later.window > answer.window AND later.window <= (SELECT min(number) FROM window))"""
"""Of windows that were dropped, but for what still was the answer in the first that is left."""


class RecordingError(TailtraceError):
    """Recording has ended for a reason outside of it; everything written before is intact."""


class Recorder:
    """A context manager: closed properly at its end, even by an exception."""

    def __init__(self, path: Path, meta: Meta, most_bytes: int | None = None) -> None:
        """
        Raises UsageError when ``path`` exists or cannot be made.

        :param most_bytes: drop the oldest windows beyond; the file may exceed it by one window,
            and its ``-wal`` has up to 4 MiB more
        """
        self._path, self._most_bytes = path, most_bytes
        _create(path)
        self._windows = 0
        self._database = sqlite3.connect(path, isolation_level=None)
        try:
            self._begin(meta)
        except sqlite3.Error as e:
            self._database.close()
            raise self._ended(e) from e

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, window: Window) -> None:
        """Raises RecordingError when the window cannot be written; the recorder is closed then."""
        try:
            with self._transaction():
                self._insert(window)
                self._drop_oldest()
                self._execute(_DROP_ANSWERS)
        except sqlite3.Error as e:
            self._database.close()
            raise self._ended(e) from e
        self._windows += 1

    def close(self) -> None:
        """Say that the recording is complete, and leave one single file."""
        # A full disk, or closed before by one: then it is not complete, and does not say so.
        with contextlib.suppress(sqlite3.Error):
            self._execute("INSERT INTO meta VALUES (?, ?)", (ENDED, str(time.time_ns())))
        self._database.close()

    def _begin(self, meta: Meta) -> None:
        for pragma in (
            "journal_mode = WAL",
            "synchronous = NORMAL",
            f"journal_size_limit = {_WAL_BYTES}",
            "foreign_keys = ON",
            f"application_id = {APPLICATION_ID}",
            f"user_version = {VERSION}",
        ):
            self._execute(f"PRAGMA {pragma}")
        with self._transaction():
            for table in TABLES:
                self._execute(table)
            for field in Meta.__struct_fields__:
                self._insert_row("meta", field, _json(getattr(meta, field)))

    def _insert(self, window: Window) -> None:
        times = window.started_ns, window.ended_ns, window.unix_ns
        number = self._insert_row("window", None, *times, window.steps)
        for (tenant, step), sums in window.by_step.items():
            count, seconds = int(sums.profile.count.sum()), _by_cause(sums.seconds)
            self._insert_row(
                *("step", number, tenant, step, int(sums.is_stage), count, seconds),
                *(sums.helper_seconds, pack_profile(sums.profile)),
            )
        for tenant, histograms in window.deschedules.items():
            self._insert_row("deschedule", number, tenant, pack(histograms))
        for tenant, profile in window.queue_waits.items():
            self._insert_row("queue_wait", number, tenant, pack_profile(profile))
        for tenant, outside in window.outside.items():
            self._insert_row("outside", number, tenant, _by_cause(outside))
        for labels, blamed in window.blame.items():
            self._insert_row("blame", number, *labels, blamed)
        for labels, counted in window.events.items():
            self._insert_row("event", number, *labels, counted)
        for place, slow in enumerate(window.slowest):
            self._insert_row("slow_step", number, place, _json(slow))
        for place, outlier in enumerate(window.outliers):
            self._insert_row("outlier", number, place, _json(outlier))
        for command, answer in window.answers.items():
            self._insert_row("answer", command, number, _json(answer))
        for place, stall in enumerate(window.stalls):
            self._insert_row("stall", number, place, _json(stall))
        for reason, lost in window.lost.items():
            self._insert_row("lost", number, reason, lost)

    def _drop_oldest(self) -> None:
        while self._most_bytes and self._used_bytes() > self._most_bytes:
            oldest = "SELECT min(number) FROM window HAVING count(*) > 1"
            if not self._execute(f"DELETE FROM window WHERE number = ({oldest})").rowcount:
                return

    def _used_bytes(self) -> int:
        pages, free, size = (
            self._execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._database.in_transaction:  # SQLite rolls back by itself when the disk is full
                self._execute("ROLLBACK")
            raise
        self._execute("COMMIT")

    def _insert_row(self, table: str, *values: object) -> int | None:
        places = ", ".join("?" * len(values))
        return self._execute(f"INSERT INTO {table} VALUES ({places})", values).lastrowid

    def _execute(self, sql: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        return self._database.execute(sql, values)

    def _ended(self, why: sqlite3.Error) -> RecordingError:
        return RecordingError(
            f"{self._path}: recording has ended after {self._windows} windows, which are intact: "
            f"{why}; make room or choose another place, and record again"
        )


def keep_previous(path: Path) -> None:
    """
    Move what an agent recorded at ``path`` before out of the way, to ``PATH.previous``.

    Raises UsageError when it is still being written.
    """
    if not path.exists():
        return
    # The last one to close a recording moves its log into it. Whatever else it is, it is kept.
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as last:
        last.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if path.with_name(f"{path.name}-wal").exists():
        raise UsageError(f"{path}: is open elsewhere, as by another agent; give each its own file")
    path.replace(path.with_name(f"{path.name}.previous"))


def _create(path: Path) -> None:
    """An empty file for its owner only, because it names what ran here."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError as e:
        raise UsageError(f"{path}: exists; remove it or give another name") from e
    except OSError as e:
        raise UsageError(f"{path}: {e.strerror}; give a place that can be written") from e


def _by_cause(seconds: NDArray[np.float64]) -> str:
    by_cause: Mapping[str, float] = {
        cause.name: float(s) for cause, s in zip(CAUSES, seconds, strict=True) if s
    }
    return _json(by_cause)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
