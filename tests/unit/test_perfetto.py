"""Traces for Perfetto, read back with its own classes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from exporters.perfetto import MOST_LANES, PerfettoTrace
from tests.unit.perfetto_reader import read
from tracer.errors import TailtraceError, UnavailableError, UsageError
from tracer.model import Span

THREAD = ("chat 70", "thread 71")


def write(path, *batches):
    with PerfettoTrace(path, monotonic_ns=5, unix_ns=1_800_000_000) as trace:
        for batch in batches:
            trace.add({THREAD: batch})
    return trace


def shape(slices):
    return [(s.name, s.begin_ns, s.end_ns, s.depth) for s in slices]


def test_stages_are_inside_of_their_step(tmp_path):
    write(tmp_path / "t", [Span("forward", 10, 40), Span("step", 10, 90), Span("gather", 40, 90)])

    (slices,) = read(tmp_path / "t")[THREAD]
    assert shape(slices) == [("step", 10, 90, 0), ("forward", 10, 40, 1), ("gather", 40, 90, 1)]


def test_details_are_those_of_the_span(tmp_path):
    details = {"step": 2**64 - 1, "tenant": "chat", "hog ran": 0.25}
    write(tmp_path / "t", [Span("step", 10, 90, details), Span("step", 90, 95)])

    (slices,) = read(tmp_path / "t")[THREAD]
    assert [each.details for each in slices] == [details, {}]


def test_what_overlaps_without_being_inside_is_on_another_track_of_the_same_name(tmp_path):
    write(tmp_path / "t", [Span("a", 10, 50), Span("b", 30, 70), Span("c", 50, 60)])

    one, other = read(tmp_path / "t")[THREAD]
    assert (shape(one), shape(other)) == (
        [("a", 10, 50, 0), ("c", 50, 60, 0)],
        [("b", 30, 70, 0)],
    )


def test_what_comes_late_does_not_disturb_what_was_drawn(tmp_path):
    write(tmp_path / "t", [Span("a", 30, 50)], [Span("b", 10, 40)], [Span("c", 50, 60)])

    late, early = read(tmp_path / "t")[THREAD]
    assert (shape(late), shape(early)) == (
        [("b", 10, 40, 0)],
        [("a", 30, 50, 0), ("c", 50, 60, 0)],
    )


def test_more_overlaps_than_tracks_of_a_name_are_counted(tmp_path):
    spans = [Span("a", at, 1000 + at) for at in range(MOST_LANES + 3)]

    trace = write(tmp_path / "t", spans)

    assert (trace.drawn, trace.left_out) == (MOST_LANES, 3)
    assert len(read(tmp_path / "t")[THREAD]) == MOST_LANES


times = st.integers(1, 60)
batches = st.lists(st.lists(st.tuples(times, times), max_size=20), max_size=4)


@settings(deadline=None)
@given(batches)
def test_whatever_the_spans_all_of_them_are_there_and_nest(tmp_path_factory, batches):
    path = tmp_path_factory.mktemp("perfetto") / "t"
    spans = [[Span("s", min(pair), max(pair)) for pair in batch] for batch in batches]

    trace = write(path, *spans)

    slices = [each for tracks in read(path).values() for track in tracks for each in track]
    wanted = sorted((span.begin_ns, span.end_ns) for batch in spans for span in batch)
    assert trace.left_out + len(slices) == len(wanted)
    if not trace.left_out:
        assert sorted((each.begin_ns, each.end_ns) for each in slices) == wanted


def test_times_are_those_of_the_monotonic_clock_with_the_wall_clock_beside(tmp_path):
    write(tmp_path / "t")

    (first,) = pb.Trace.FromString((tmp_path / "t").read_bytes()).packet
    clocks = {clock.clock_id: clock.timestamp for clock in first.clock_snapshot.clocks}
    assert (first.clock_snapshot.primary_trace_clock, clocks) == (3, {3: 5, 1: 1_800_000_000})
    assert first.trace_packet_defaults.timestamp_clock_id == 3


def test_without_the_package_it_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)

    with pytest.raises(UnavailableError, match=r"pip install 'tailtrace\[timeline\]'"):
        write(tmp_path / "t")


def test_a_file_that_exists_is_not_overwritten(tmp_path):
    write(tmp_path / "t")

    with pytest.raises(UsageError, match="File exists; give a new file"):
        write(tmp_path / "t")


def test_a_full_disk_ends_the_drawing_in_one_line(tmp_path):
    trace = PerfettoTrace(tmp_path / "t", 1, 1)
    trace._file = Path("/dev/full").open("wb")  # noqa: SIM115 (the trace closes it)

    with pytest.raises(TailtraceError, match="No space left on device; what was drawn"), trace:
        trace.add({THREAD: [Span("a", 1, 2)]})
