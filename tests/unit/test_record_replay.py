"""A recording tells what the agent told: the same figures, field by field."""

from __future__ import annotations

import sqlite3
from dataclasses import asdict, replace

import msgspec
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.unit.recorded import Drains, S, meta
from tracer.cli import main
from tracer.judge.migration.compare import compare
from tracer.judge.migration.criteria import Criteria
from tracer.ledger.families import families
from tracer.ledger.summarise import summarise
from tracer.record.recorder import Recorder
from tracer.record.recording import Recording
from tracer.record.window import Answer


def assert_equal(live, replayed, where="summary"):
    """Field by field; numbers up to the rounding of sums in another order."""
    assert type(live) is type(replayed), where
    if isinstance(live, dict):
        assert list(live) == list(replayed) or set(live) == set(replayed), where
        for key in live:
            assert_equal(live[key], replayed[key], f"{where}.{key}")
    elif isinstance(live, list | tuple):
        assert len(live) == len(replayed), where
        for i, (one, other) in enumerate(zip(live, replayed, strict=True)):
            assert_equal(one, other, f"{where}[{i}]")
    elif isinstance(live, float):
        assert live == pytest.approx(replayed, rel=1e-9, abs=1e-12), where
    else:
        assert live == replayed, where


def record(path, drains, windows, **options):
    with Recorder(path, meta(max_tenants=drains.totals.tenants._most), **options) as recorder:
        for _ in range(windows):
            recorder.write(drains.window())
    return Recording.open(path)


@pytest.mark.parametrize("seed", range(8))
def test_the_summary_of_a_recording_is_the_agents(tmp_path, seed):
    drains = Drains(seed, max_tenants=2 if seed % 2 else 100)

    with record(tmp_path / "a.db", drains, windows=seed + 1) as recording:
        replayed = recording.summary()

    live = summarise(drains.totals, drains.lost, drains.now_ns)
    assert len(live.rows) > 3
    assert len(live.slowest) > 20
    assert_equal(asdict(live), asdict(replayed))


def test_every_exported_figure_is_the_agents(tmp_path):
    drains = Drains(1)
    with record(tmp_path / "a.db", drains, windows=12) as recording:
        totals, _, ended_ns = recording.totals()

    unix = 1_800_000_120.0
    replayed = {family.metric.name: family for family in families(totals, ended_ns - 1, unix)}

    for family in families(drains.totals, drains.now_ns - 1, unix):
        of = replayed[family.metric.name]
        assert set(family.rows) == set(of.rows), family.metric.name
        for labels, value in family.rows.items():
            if isinstance(value, float):
                assert_allclose(of.rows[labels], value, rtol=1e-9)
            else:
                assert_array_equal(value.counts, of.rows[labels].counts)
                assert_allclose(of.rows[labels].sum, value.sum, rtol=1e-9)
        assert {k: sorted(v, key=str) for k, v in family.exemplars.items()} == {
            k: sorted(v, key=str) for k, v in of.exemplars.items()
        }


def test_a_recording_that_began_while_the_agent_ran_has_what_came_since(tmp_path):
    drains = Drains(2)
    before = drains.window()
    drains.window()
    after = drains.window()

    with Recorder(tmp_path / "a.db", meta()) as recorder:
        recorder.write(after)
    with Recording.open(tmp_path / "a.db") as recording:
        summary = recording.summary()

    assert before.steps > 0
    assert summary.steps == after.steps
    assert summary.seconds == 10.0
    assert sum(row.count for row in summary.rows) == sum(
        int(sums.profile.count.sum()) for sums in after.by_step.values()
    )


def test_the_slowest_of_the_whole_recording_can_be_asked_for(tmp_path):
    drains = Drains(3)
    slowest = 0

    with Recorder(tmp_path / "a.db", meta()) as recorder:
        for _ in range(20):
            window = drains.window()
            slowest = max([slowest, *(s.end_ns - s.begin_ns for s in window.slowest)])
            recorder.write(window)

    with Recording.open(tmp_path / "a.db") as recording:
        assert recording.summary(slowest_of=200).slowest[0].elapsed == slowest / 1e9
        assert all(s.end_ns > 140 * S for s in recording.summary().slowest)


@pytest.mark.parametrize("seed", range(4))
def test_a_slow_step_is_explained_as_the_agent_would(tmp_path, seed):
    drains = Drains(seed)
    with record(tmp_path / "a.db", drains, windows=6) as recording:
        live = summarise(drains.totals, drains.lost, drains.now_ns).slowest[7]
        (replayed,) = (
            step for step in recording.slow_steps(live.number) if step.number == live.number
        )

    assert_equal(asdict(live), asdict(replayed))


def test_report_and_explain_end_with_where_memory_is(tmp_path, capsys):
    drains, path = Drains(5), str(tmp_path / "a.db")
    with record(tmp_path / "a.db", drains, windows=2) as recording:
        step = recording.summary().slowest[0].number

    for command in (["report", path], ["explain", str(step), path]):
        assert main(command) == 0
        told = capsys.readouterr().out.splitlines()
        assert told[-3:] == ["", "Where memory is", "  where it should be"]


def test_a_step_is_found_with_its_stages_in_any_window(tmp_path):
    drains = Drains(6)
    windows = [drains.window() for _ in range(9)]
    whole = next(step for step in windows[0].slowest if not step.parent)
    stage = next(step for step in windows[8].slowest if step.parent)
    stage = msgspec.structs.replace(stage, parent=whole.number)
    windows[8] = replace(windows[8], slowest=[stage])
    with Recorder(tmp_path / "a.db", meta()) as recorder:
        for window in windows:
            recorder.write(window)

    with Recording.open(tmp_path / "a.db") as recording:
        found = recording.slow_steps(whole.number)
        ended = recording.unix_seconds(whole.end_ns)

        assert {whole.number, stage.number} == {step.number for step in found}
        assert recording.slow_steps(10**12) == ()
        assert ended == pytest.approx(1_800_000_000 + whole.end_ns / 1e9)


def test_the_latest_is_the_last_window_alone(tmp_path):
    drains = Drains(7)
    with record(tmp_path / "a.db", drains, windows=4) as recording:
        latest, all_steps = recording.latest(), recording.summary().steps
        (last,) = recording.windows(last=1)

    assert (latest.steps, latest.seconds) == (last.steps, 10.0)
    assert 0 < latest.steps < all_steps
    assert len(latest.slowest) == len(last.slowest)


def test_what_commands_said_last_is_kept_however_many_windows_are_dropped(tmp_path):
    drains = Drains(8)
    with record(tmp_path / "a.db", drains, windows=60, most_bytes=600_000) as recording:
        assert (dropped := recording.dropped) > 10
        assert recording.answers() == drains.answers()
        of_windows = [window.answers for window in recording.windows()]

    assert not any("doctor" in answers for answers in of_windows)
    assert {"memory"} == set().union(*of_windows)
    rows = sqlite3.connect(tmp_path / "a.db").execute("SELECT command, window FROM answer")
    assert len([w for command, w in rows if command == "memory" and w <= dropped]) <= 1


def test_windows_are_read_as_they_were_written(tmp_path):
    drains = Drains(4)
    written = [drains.window() for _ in range(3)]
    with Recorder(tmp_path / "a.db", meta()) as recorder:
        for window in written:
            recorder.write(window)

    with Recording.open(tmp_path / "a.db") as recording:
        read = list(recording.windows())
        assert recording.meta == meta()

    for window, again in zip(written, read, strict=True):
        plain = {"by_step": {}, "queue_waits": {}, "deschedules": {}, "outside": {}}
        assert replace(window, **plain) == replace(again, **plain)
        for labels, sums in window.by_step.items():
            assert_array_equal(sums.profile.ns, again.by_step[labels].profile.ns)
            assert_array_equal(sums.seconds, again.by_step[labels].seconds)
        for tenant, histograms in window.deschedules.items():
            assert_array_equal(histograms, again.deschedules[tenant])
        assert np.any([h.any() for h in window.deschedules.values()])


def test_a_slow_step_whose_like_were_all_dropped_is_left_out(tmp_path):
    first, second = (drains := Drains(5)).window(), drains.window()
    (labels, sums), *_ = second.by_step.items()
    only = replace(second, by_step={labels: sums}, slowest=[*first.slowest, *second.slowest])
    with Recorder(tmp_path / "a.db", meta()) as recorder:
        recorder.write(only)

    with Recording.open(tmp_path / "a.db") as recording:
        slowest = recording.summary().slowest

    assert {labels} == {(step.tenant, step.step) for step in slowest}


@pytest.mark.parametrize(
    ("value", "misplaced"),
    [
        ({"segments": [{"verdict": "misplaced"}, {"verdict": "placed"}]}, 1),
        ({"segments": []}, 0),
        ({"segments": 7}, None),
        (None, None),
    ],
)
def test_segments_that_memory_found_misplaced_are_in_the_comparison(tmp_path, value, misplaced):
    window = replace(Drains(9).window(), answers={"memory": Answer(value, ())})
    with Recorder(tmp_path / "a.db", meta()) as recorder:
        recorder.write(window)

    with Recording.open(tmp_path / "a.db") as side:
        assert compare(side, side, Criteria()).after.misplaced_segments == misplaced
