"""The file: what survives, what is dropped, and what is refused in one line."""

from __future__ import annotations

import itertools
import os
import random
import re
import signal
import sqlite3
import subprocess
import time
from dataclasses import replace

import pytest

from tests.unit.recorded import Drains, meta
from tracer.errors import UsageError
from tracer.record.recorder import Recorder, RecordingError, keep_previous
from tracer.record.recording import Recording


def in_child(path, windows):
    """A process that records these windows over and over; its pid, and a pipe that it tells."""
    told, telling = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with Recorder(path, meta()) as recorder:
                for window in itertools.cycle(windows):
                    recorder.write(window)
                    os.write(telling, b".")
        finally:
            os._exit(1)
    os.close(telling)
    return child, told


def kill(child, told):
    """How many windows it told to have written."""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(told, "rb") as pipe:
        return len(pipe.read())


def recorded(path, windows=3, seed=0, **options):
    drains = Drains(seed)
    with Recorder(path, meta(), **options) as recorder:
        for _ in range(windows):
            recorder.write(drains.window())
    return path


def refused(path):
    """What is said, when the file is opened or read to its end."""
    with pytest.raises(UsageError) as refusal, Recording.open(path) as recording:
        recording.summary()
    message = str(refusal.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    assert refusal.value.exit_code == 2
    return message.removeprefix(f"{path}: ")


# What survives.


def test_killed_at_any_moment_all_windows_but_at_most_the_last_are_there(tmp_path):
    drains, chance = Drains(7), random.Random(7)
    windows = [drains.window() for _ in range(20)]
    for trial in range(50):
        path = tmp_path / f"{trial}.db"
        child, told = in_child(path, windows)
        os.read(told, 1)
        time.sleep(chance.uniform(0, 0.05))
        written = 1 + kill(child, told)

        with Recording.open(path) as recording:
            read = list(recording.windows())
            assert recording.summary().steps == sum(window.steps for window in read)
            assert not recording.closed_properly
        assert written <= len(read) <= written + 1


def test_a_recording_that_ended_by_itself_says_so_and_is_one_file(tmp_path):
    recorded(tmp_path / "a.db")

    with Recording.open(tmp_path / "a.db") as recording:
        assert recording.closed_properly
    assert [file.name for file in tmp_path.iterdir()] == ["a.db"]


def test_a_recording_that_is_being_written_can_be_read(tmp_path):
    drains = Drains(0)
    with Recorder(tmp_path / "a.db", meta()) as recorder:
        recorder.write(drains.window())
        with Recording.open(tmp_path / "a.db") as recording:
            recorder.write(drains.window())
            assert len(list(recording.windows())) == 1
            assert not recording.closed_properly


def test_a_recording_can_be_read_where_nothing_can_be_written(tmp_path):
    path = recorded(tmp_path / "ä b?#%.db")
    before = path.read_bytes()
    tmp_path.chmod(0o500)

    with Recording.open(path) as recording:
        assert len(list(recording.windows())) == 3
    assert before == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_ends_the_recording_and_nothing_before_is_lost(tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path], check=True)
    try:
        drains, path, written = Drains(0), tmp_path / "a.db", 0
        with Recorder(path, meta()) as recorder, pytest.raises(RecordingError) as full:
            while written < 1000:
                recorder.write(drains.window())
                written += 1
        with Recording.open(path) as recording:
            assert len(list(recording.windows())) == written > 2
            assert not recording.closed_properly
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)
    assert str(full.value) == (
        f"{path}: recording has ended after {written} windows, which are intact: "
        "database or disk is full; make room or choose another place, and record again"
    )


# The ring.


def test_a_ring_drops_the_oldest_windows_and_stays_within_its_size(tmp_path):
    most = 600_000
    path = recorded(tmp_path / "ring.db", windows=60, most_bytes=most)

    with Recording.open(path) as recording:
        windows = list(recording.windows())
        assert len(windows) + recording.dropped == 60
        assert recording.dropped > 10
        summary = recording.summary()
    assert summary.steps == sum(window.steps for window in windows)
    assert summary.seconds == pytest.approx(10 * len(windows))
    assert path.stat().st_size <= most + 100_000


def test_a_window_larger_than_the_ring_is_kept(tmp_path):
    path = recorded(tmp_path / "ring.db", windows=5, most_bytes=4096)

    with Recording.open(path) as recording:
        assert (len(list(recording.windows())), recording.dropped) == (1, 4)


def test_what_an_agent_recorded_before_is_kept_even_if_it_was_killed(tmp_path):
    path = tmp_path / "ring.db"
    child, told = in_child(path, [Drains(1).window()])
    os.read(told, 1)
    kill(child, told)

    keep_previous(path)

    assert not path.exists()
    with Recording.open(tmp_path / "ring.db.previous") as recording:
        assert list(recording.windows())


def test_a_ring_that_another_agent_writes_is_left_alone(tmp_path):
    path = tmp_path / "ring.db"
    with Recorder(path, meta()) as recorder:
        recorder.write(Drains(0).window())
        with pytest.raises(UsageError, match="is open elsewhere, as by another agent"):
            keep_previous(path)


# What is refused.


def test_nothing_is_overwritten(tmp_path):
    path = recorded(tmp_path / "a.db")

    with pytest.raises(UsageError, match=re.escape(f"{path}: exists; remove it or")):
        Recorder(path, meta())


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"none/a\.db: No such file or directory; give a place"):
        Recorder(tmp_path / "none" / "a.db", meta())


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert refused(tmp_path / "a.db") == "No such file or directory; give a recording"


@pytest.mark.parametrize("content", [b"\x00" * 5000, b"SQLite format 3\x00", b"hello\n" * 999])
def test_another_kind_of_file_is_refused(tmp_path, content):
    (tmp_path / "a.db").write_bytes(content)

    assert "is no readable recording" in refused(tmp_path / "a.db")


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "a.db").touch()

    assert refused(tmp_path / "a.db") == "is empty; record again"


def test_another_programs_database_is_refused(tmp_path):
    database = sqlite3.connect(tmp_path / "a.db")
    database.execute("CREATE TABLE window (number)")
    database.close()

    assert refused(tmp_path / "a.db") == "is another program's; give a recording of tailtrace"


def change(path, sql):
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(sql)
    database.close()


def test_a_newer_schema_is_refused_with_the_way_out(tmp_path):
    path = recorded(tmp_path / "a.db")
    change(path, "PRAGMA user_version = 3")

    assert refused(path) == (
        "has schema 3, newer than 2; read it with the tailtrace that recorded it, or a later one"
    )


def test_a_recording_of_the_schema_before_is_read(tmp_path):
    path = recorded(tmp_path / "a.db", windows=3)
    with Recording.open(path) as recording:
        summary = replace(recording.summary(), stalls=(), longest_stalls=())
    for later_table in ("outlier", "answer", "stall"):
        change(path, f"DROP TABLE {later_table}")
    change(path, "PRAGMA user_version = 1")

    with Recording.open(path) as recording:
        assert recording.summary() == summary
        assert not any(window.outliers for window in recording.windows())
        assert recording.answers() == {}


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_recording_is_refused(tmp_path, part):
    path = recorded(tmp_path / "a.db", windows=5)
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])

    assert "is no readable recording" in refused(path)


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE blame",
        "CREATE VIEW more AS SELECT 1",
        "UPDATE step SET profile = x'00'",
        "UPDATE step SET profile = zeroblob(1000000)",
        "UPDATE step SET seconds = '{'",
        """UPDATE step SET seconds = '{"waiting": 1}'""",
        "UPDATE deschedule SET histograms = x'789c030000000001'",
        "UPDATE OR IGNORE blame SET cause = 'waiting'",
        "UPDATE OR IGNORE lost SET reason = 'no idea'",
        "UPDATE slow_step SET step = '[]'",
        "UPDATE slow_step SET step = json_set(step, '$.target', -1)",
        "UPDATE slow_step SET step = json_set(step, '$.number', 1e30)",
        "UPDATE slow_step SET step = replace(step, 'preempted', 'waiting')",
        "UPDATE stall SET stall = replace(stall, 'scope', 'range')",
        "UPDATE stall SET stall = json_set(stall, '$.scope', 'most')",
        "UPDATE stall SET stall = json_set(stall, '$.begin_ns', 1 << 62)",
        "UPDATE stall SET stall = json_set(stall, '$.cpus', 'all')",
        "UPDATE meta SET value = '1e30' WHERE key = 'started_unix_ns'",
        "UPDATE meta SET value = '[' WHERE key = 'machine'",
        "DELETE FROM meta WHERE key = 'max_tenants'",
        """UPDATE meta SET value = '["waiting"]' WHERE key = 'causes'""",
        """UPDATE meta SET value = '["waiting"]' WHERE key = 'deschedules'""",
        "UPDATE meta SET value = '1000000000' WHERE key = 'max_tenants'",
    ],
)
def test_a_recording_with_something_else_in_it_is_refused(tmp_path, damage):
    path = recorded(tmp_path / "a.db")
    change(path, damage)

    assert "is no readable recording" in refused(path)


def test_names_are_made_fit_to_be_shown(tmp_path):
    path = recorded(tmp_path / "a.db")
    change(path, "UPDATE step SET tenant = char(27) || '[2J' || tenant")

    with Recording.open(path) as recording:
        tenants = {row.tenant for row in recording.summary().rows}
    assert "\\x1b[2Jchat" in tenants
    assert all(name.isprintable() for name in tenants)


def test_a_damaged_page_never_escapes_as_another_error(tmp_path):
    content = bytearray(recorded(tmp_path / "a.db").read_bytes())
    chance = random.Random(1)
    path = tmp_path / "b.db"
    said = 0
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(20):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            with Recording.open(path) as recording:
                recording.summary()
        except UsageError as e:
            assert "\n" not in str(e)
            said += 1
    assert said > 50
