"""The metrics page: exact text, equality with the client library's own, and what it refuses."""

from __future__ import annotations

import os
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import core
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporters.prometheus import OPENMETRICS, TEXT, Page, negotiate
from tracer import catalog
from tracer.model import Exemplar, Family, Histogram

EDGES = np.array([0.001, 0.002])
LOST = Family(catalog.LOST, {("ring_full",): 3})
WAITS = Family(
    catalog.DESCHEDULE,
    {("chat", "preempted"): Histogram(np.array([5, 0, 2]), 0.25)},
    EDGES,
    {("chat", "preempted"): [Exemplar(0.09, {"step": "17", "by": "grpc"}, 1700000000.5)]},
)


def page(*families: Family) -> Page:
    published = Page(interval_seconds=1)
    published.publish(families)
    return published


def text(*families: Family) -> str:
    return page(*families).read(TEXT).decode()


def openmetrics(*families: Family) -> str:
    return page(*families).read(OPENMETRICS).decode()


def test_text_is_exact():
    assert text(LOST, WAITS) == (
        "# HELP tailtrace_lost_total What was not counted, by reason.\n"
        "# TYPE tailtrace_lost_total counter\n"
        'tailtrace_lost_total{reason="ring_full"} 3\n'
        "# HELP tailtrace_deschedule_seconds"
        " Intervals in which a runnable inference thread did not execute.\n"
        "# TYPE tailtrace_deschedule_seconds histogram\n"
        'tailtrace_deschedule_seconds_bucket{cause="preempted",le="0.001",tenant="chat"} 5\n'
        'tailtrace_deschedule_seconds_bucket{cause="preempted",le="0.002",tenant="chat"} 5\n'
        'tailtrace_deschedule_seconds_bucket{cause="preempted",le="+Inf",tenant="chat"} 7\n'
        'tailtrace_deschedule_seconds_count{cause="preempted",tenant="chat"} 7\n'
        'tailtrace_deschedule_seconds_sum{cause="preempted",tenant="chat"} 0.25\n'
    )


def test_openmetrics_carries_exemplars_and_ends():
    lines = openmetrics(LOST, WAITS).splitlines()

    assert lines[1] == "# TYPE tailtrace_lost counter"
    assert (
        'tailtrace_deschedule_seconds_bucket{cause="preempted",le="+Inf",tenant="chat"} 7'
        ' # {step="17",by="grpc"} 0.09 1700000000.500'
    ) in lines
    assert lines[-1] == "# EOF"


def test_the_latest_exemplar_of_a_bucket_stays():
    early, late = (Exemplar(0.0015, {"step": str(at)}, at) for at in (1.0, 2.0))
    waits = Family(WAITS.metric, WAITS.rows, EDGES, {("chat", "preempted"): [late, early]})

    assert openmetrics(waits).count(" # ") == 1
    assert 'le="0.002",tenant="chat"} 5 # {step="2.0"} 0.0015 2.000' in openmetrics(waits)


def test_an_observation_on_an_edge_belongs_to_that_bucket():
    on_edge = Family(
        WAITS.metric, WAITS.rows, EDGES, {("chat", "preempted"): [Exemplar(0.001, {}, 1)]}
    )

    assert 'le="0.001",tenant="chat"} 5 # {} 0.001 1.000' in openmetrics(on_edge)


def test_exemplar_labels_beyond_the_formats_limit_are_left_out():
    labels = {"step": "17", "container": "x" * 200, "cpu": "3"}
    waits = Family(
        WAITS.metric, WAITS.rows, EDGES, {("chat", "preempted"): [Exemplar(0.09, labels, 1)]}
    )

    assert '# {step="17"} 0.09' in openmetrics(waits)


def test_values_change_and_rows_disappear():
    published = page(LOST)
    published.read(TEXT)

    published.publish([Family(catalog.LOST, {("torn",): 4})])

    assert b'{reason="torn"} 4\n' in published.read(TEXT)
    assert b"ring_full" not in published.read(TEXT)


def test_a_metric_without_rows_is_declared_but_has_no_value():
    assert text(Family(catalog.STEAL, {})).splitlines()[-1].startswith("# TYPE")


def test_no_created_series():
    assert "_created" not in openmetrics(LOST, WAITS)


def test_undecodable_names_stay_apart():
    names = Family(catalog.LOST, {(os.fsdecode(b"a\x80"),): 1, (os.fsdecode(b"a\x81"),): 2})

    assert r'{reason="a\\udc80"} 1' in text(names)
    assert r'{reason="a\\udc81"} 2' in text(names)


NAMES = st.text(string.printable + "äß%{}\x00\x1c\u2028", max_size=8)
COUNTS = st.lists(st.integers(0, 2**40), min_size=3, max_size=3).map(np.array)
SECONDS = st.floats(0, 1e9)


@given(st.dictionaries(st.tuples(NAMES, NAMES), st.builds(Histogram, COUNTS, SECONDS)))
def test_histograms_are_those_that_the_library_writes(rows):
    expected = core.HistogramMetricFamily(
        "tailtrace_deschedule_seconds", catalog.DESCHEDULE.help, labels=("tenant", "cause")
    )
    for labels, row in rows.items():
        buckets = zip(["0.001", "0.002", "+Inf"], row.counts.cumsum().tolist(), strict=True)
        expected.add_metric(labels, list(buckets), row.sum)

    waits = Family(catalog.DESCHEDULE, rows, EDGES)

    assert list(parse_openmetrics(openmetrics(waits))) == [expected]
    assert list(parse_text(text(waits))) == [expected]


@given(st.dictionaries(st.tuples(NAMES), st.floats(allow_nan=False)))
def test_counters_are_those_that_the_library_writes(rows):
    expected = core.CounterMetricFamily("tailtrace_lost", catalog.LOST.help, labels=("reason",))
    for labels, value in rows.items():
        expected.add_metric(labels, value)

    assert list(parse_text(text(Family(catalog.LOST, rows)))) == [expected]


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5", OPENMETRICS),
        ("application/openmetrics-text; version=1.0.0; escaping=values", OPENMETRICS),
        ("text/plain;version=1.0.0;escaping=allow-utf-8", TEXT),
        ("*/*", TEXT),
        ("", TEXT),
        ("application/openmetrics-text; version=new", TEXT),
        ("\x00;;==,,;version", TEXT),
    ],
)
def test_the_client_chooses_the_format(accept, form):
    assert negotiate(accept) is form


def test_a_page_is_believed_while_it_is_published():
    now = [100.0]
    published = Page(interval_seconds=2, clock=lambda: now[0])
    assert published.problem() == "nothing published yet: the agent is starting"

    published.publish([LOST])
    now[0] += 6
    assert published.problem() == ""

    now[0] += 0.5
    assert published.problem() == "last published 6.5 s ago instead of every 2 s"


def test_before_the_first_publishing_there_is_nothing_to_read():
    assert Page(interval_seconds=1).read(TEXT) == b""
