"""Steps and deschedules on a timeline."""

from __future__ import annotations

import itertools

import numpy as np

from exporters.perfetto import PerfettoTrace
from tests.unit.perfetto_reader import read
from tests.unit.recorded import Drains, S, meta
from tracer.catalog import CAUSES
from tracer.ledger import spans
from tracer.ledger.spans import Drawing
from tracer.ledger.timeline import STEP_UNKNOWN
from tracer.record.recorder import Recorder
from tracer.record.recording import Recording

STALLS = "CPUs that stood still"


def drawing_of(drains):
    return Drawing(drains.totals, "engine {}".format)


def one_step(drains):
    drains.now_ns += 10 * S
    steps = drains.steps(1)
    steps.parent[:] = 0
    drains.totals.add_steps(steps, drains.now_ns)
    return steps


def test_a_step_is_on_the_track_of_its_thread():
    steps = one_step(drains := Drains(1))

    drawn = drawing_of(drains).of_steps(steps)

    (span,) = drawn[f"engine {steps.target[0]}", f"thread {steps.tid[0]}"]
    assert (span.begin_ns, span.end_ns) == (steps.begin_ns[0], steps.end_ns[0])
    assert span.name in drains.names.kinds
    assert span.details["step"] == steps.number[0]
    aggressors = {key: s for key, s in span.details.items() if key.endswith(" ran")}
    assert round(1e9 * sum(aggressors.values())) == steps.aggressors["ns"].sum()


def test_its_causes_are_end_to_end_under_it_and_add_up_to_it():
    steps = one_step(drains := Drains(2))
    steps.ns[0, -1] = 0
    steps.end_ns[0] = steps.begin_ns[0] + steps.ns[0].sum()

    drawn = drawing_of(drains).of_steps(steps)

    causes = drawn[f"engine {steps.target[0]}", f"thread {steps.tid[0]}", "where the time went"]
    assert {span.name: span.end_ns - span.begin_ns for span in causes} == {
        cause.name: n for cause, n in zip(CAUSES, steps.ns[0].tolist(), strict=True) if n
    }
    assert causes[0].begin_ns == steps.begin_ns[0]
    assert all(a.end_ns == b.begin_ns for a, b in itertools.pairwise(causes))
    lengths = [span.end_ns - span.begin_ns for span in causes]
    assert lengths == sorted(lengths, reverse=True)


def test_a_long_deschedule_is_on_the_tracks_of_its_thread_and_of_its_cpu():
    drains = Drains(3)
    drains.now_ns = 10 * S
    outliers, tenant = drains._outliers(1)

    drawn = drawing_of(drains).of_outliers(outliers, tenant)

    (row,) = outliers
    (waited,) = drawn[f"engine {row['process']}", f"thread {row['tid']}", "without a CPU"]
    (ran,) = drawn["who ran while a step waited", f"CPU {row['cpu']}"]
    assert (waited.name, ran.name) == ("preempted", "hog")
    for span in (waited, ran):
        assert span.end_ns - span.begin_ns == row["wait"]["ns"]
        assert span.end_ns == row["wait"]["at_ns"]
        assert span.details["tenant"] == drains.names.tenants[tenant[0]]
    assert ran.details["thread that waited"] == row["tid"]


def test_a_deschedule_outside_of_steps_or_between_two_marks_has_no_step():
    drains = Drains(3)
    drains.now_ns = 10 * S
    outliers, tenant = drains._outliers(3)
    outliers["step"] = 0, STEP_UNKNOWN, 7

    drawn = drawing_of(drains).of_outliers(outliers, tenant)

    steps = {s.details.get("step") for spans in drawn.values() for s in spans}
    assert steps == {None, 7}


def test_a_stall_is_on_the_tracks_of_its_cpus_and_of_the_threads_that_it_hit():
    drains = Drains(4)
    drains.now_ns = 10 * S
    stall = drains.stall()

    drawn = drawing_of(drains).of_stalls([stall])

    (hit,) = stall.hit
    assert set(drawn) == {(STALLS, "CPU 0"), (STALLS, "CPU 3"), (STALLS, f"thread {hit.tid}")}
    (cpu,), (thread,) = drawn[STALLS, "CPU 0"], drawn[STALLS, f"thread {hit.tid}"]
    assert (cpu.name, cpu.begin_ns, cpu.end_ns) == (
        f"stall of {stall.scope}",
        stall.begin_ns,
        stall.end_ns,
    )
    assert (thread.end_ns, thread.details["step"]) == (stall.end_ns, hit.step)


def test_of_every_second_the_longest_are_drawn_and_the_rest_is_counted(monkeypatch):
    monkeypatch.setattr(spans, "MOST_STEPS", 10)
    drains = Drains(4)
    drains.now_ns = 10 * S
    steps = drains.steps(200)
    drains.totals.add_steps(steps, drains.now_ns)

    drawing = drawing_of(drains)
    drawn = [s for track, of in drawing.of_steps(steps).items() if len(track) == 2 for s in of]

    seconds = np.unique(steps.end_ns // S)
    assert len(drawn) == 10 * len(seconds)
    assert drawing.left_out == 200 - len(drawn)
    assert max(steps.elapsed_ns) == max(span.end_ns - span.begin_ns for span in drawn)


def test_a_minute_of_any_load_is_below_20_mb(tmp_path):
    drains, seconds = Drains(5), 3
    drains.now_ns = 10 * S
    with PerfettoTrace(tmp_path / "t", 1, 1) as trace:
        drawing = drawing_of(drains)
        for _ in range(seconds):
            drains.now_ns += S
            steps = drains.steps(2 * spans.MOST_STEPS)
            drains.totals.add_steps(steps, drains.now_ns)
            trace.add(drawing.of_steps(steps))
            trace.add(drawing.of_outliers(*drains._outliers(2 * spans.MOST_WAITS)))

    assert drawing.left_out > 0
    assert (tmp_path / "t").stat().st_size / seconds * 60 < 20e6


def test_a_recording_is_drawn_with_every_slow_step_that_it_has(tmp_path):
    drains = Drains(6)
    with Recorder(tmp_path / "a.db", meta()) as recorder:
        windows = [drains.window() for _ in range(3)]
        for window in windows:
            recorder.write(window)

    with Recording.open(tmp_path / "a.db") as recording, PerfettoTrace(tmp_path / "t", 1, 1) as to:
        totals, events = recording.events()
        drawing = Drawing(totals, "process {}".format)
        for steps, *outliers, stalls in events:
            to.add(drawing.of_steps(steps))
            to.add(drawing.of_outliers(*outliers))
            to.add(drawing.of_stalls(stalls))

    tracks = read(tmp_path / "t")
    steps, waits = (
        [each for track, lanes in tracks.items() if of(track) for lane in lanes for each in lane]
        for of in (
            lambda track: len(track) == 2 and track[0].startswith("process"),
            lambda track: track[-1] == "without a CPU",
        )
    )
    stood_still = [of for track, of in tracks.items() if track == (STALLS, "CPU 3")]
    drawn = sum(len(lane) for lanes in stood_still for lane in lanes)
    assert drawn == sum(len(window.stalls) for window in windows) > 0
    slowest = {step.number for window in windows for step in window.slowest}
    assert {each.details["step"] for each in steps} == slowest
    assert len(waits) == sum(len(window.outliers) for window in windows) > 0
