"""Recent history: kept by one agent at a time, and never at the price of tracing."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from contextlib import contextmanager

import pytest

from tests.unit.recorded import Drains, meta
from tracer.config import History
from tracer.ledger.summarise import summarise
from tracer.record.history import keeping
from tracer.record.recording import Recording


@contextmanager
def kept(directory, **options):
    """``keep``, what was said, and what was counted."""
    said, lost = [], Counter()
    history = History(directory=str(directory), **options)
    with keeping(history, meta(), lost, said.append) as keep:
        yield keep, said, lost


def test_it_is_a_recording_that_can_be_read_while_it_is_kept(tmp_path):
    drains = Drains(0)
    with kept(tmp_path / "new") as (keep, said, lost):
        for _ in range(3):
            keep(drains.window())
        with Recording.open(tmp_path / "new/recent.db") as recording:
            summary = recording.summary()

    assert summary.steps == summarise(drains.totals, drains.lost, drains.now_ns).steps > 0
    assert (said, lost) == ([], Counter())


def test_it_stays_within_its_bound(tmp_path):
    drains, written = Drains(1), 60
    with kept(tmp_path, max_mb=1) as (keep, *_):
        for _ in range(written):
            keep(drains.window(steps=200))

    with Recording.open(tmp_path / "recent.db") as recording:
        assert recording.dropped > 0
        assert recording.dropped + len(list(recording.windows())) == written
    assert (tmp_path / "recent.db").stat().st_size < 1.2 * 2**20


def test_what_the_agent_before_has_left_is_kept_until_the_one_after_the_next(tmp_path):
    for windows in (1, 2, 3):
        drains = Drains(windows)
        with kept(tmp_path) as (keep, *_):
            for _ in range(windows):
                keep(drains.window())

    for name, windows in (("recent.db", 3), ("recent.db.previous", 2)):
        with Recording.open(tmp_path / name) as recording:
            assert recording.last == windows


def test_a_second_agent_traces_without_and_leaves_the_firsts_alone(tmp_path):
    window = Drains(2).window()
    with kept(tmp_path) as (keep, *_):
        keep(window)
        with kept(tmp_path) as (second, said, lost):
            second(window)
        keep(window)

    assert len(said) == 1
    assert said[0].startswith(f"no history is kept: {tmp_path}/recent.db: is open elsewhere")
    assert lost == {"history_unwritten": 1}
    with Recording.open(tmp_path / "recent.db") as recording:
        assert recording.last == 2


def test_a_place_where_nothing_can_be_kept_is_told_and_counted(tmp_path):
    (tmp_path / "file").touch()
    with kept(tmp_path / "file/below") as (keep, said, lost):
        keep(Drains(3).window())

    (line,) = said
    assert "Not a directory" in line and "history.directory" in line
    assert lost == {"history_unwritten": 1}


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_ends_the_history_and_what_was_kept_is_intact(tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path], check=True)
    try:
        drains = Drains(4)
        with kept(tmp_path) as (keep, said, lost):
            while not lost:
                keep(drains.window())
            keep(drains.window())
        with Recording.open(tmp_path / "recent.db") as recording:
            written = recording.last
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)

    assert lost == {"history_unwritten": 2}
    assert said == [
        f"{tmp_path}/recent.db: recording has ended after {written} windows, which are intact: "
        "database or disk is full; make room or choose another place, and record again"
    ]


def test_no_history_is_no_loss_where_none_is_wanted():
    with kept("") as (keep, said, lost):
        keep(Drains(5).window())

    assert (said, lost) == ([], Counter())
