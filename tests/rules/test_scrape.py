"""The page before those who read it: promtool, and a real Prometheus."""

from __future__ import annotations

import subprocess

import pytest

from exporters.prometheus import TEXT
from tracer.catalog import METRICS, Metric, Type


def test_promtool_finds_the_page_in_order(full_page):
    check = subprocess.run(
        ["promtool", "check", "metrics"],
        check=False,
        input=full_page.read(TEXT),
        capture_output=True,
    )

    # A gauge that says how many observations are behind the gauge beside it, and named so.
    assert check.stderr.decode().splitlines() == [
        "tailtrace_deschedule_window_count non-histogram and non-summary metrics should not have "
        '"_count" suffix'
    ]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_metric_arrives_with_its_labels(prometheus, metric: Metric):
    suffix = "_bucket" if metric.type is Type.HISTOGRAM else ""
    series = prometheus.query(f"{metric.name}{suffix}")

    own = {"__name__", "instance", "job", "le"}
    assert series
    assert [{*metric.labels}] * len(series) == [{*row["metric"]} - own for row in series]


def test_nothing_arrives_that_the_catalog_does_not_name(prometheus):
    names = set(prometheus.get("label/__name__/values"))
    suffixes = ("_bucket", "_count", "_sum")
    histograms = {m.name + end for m in METRICS if m.type is Type.HISTOGRAM for end in suffixes}
    others = {m.name for m in METRICS if m.type is not Type.HISTOGRAM}

    assert {name for name in names if name.startswith("tailtrace_")} == histograms | others


def test_exemplars_arrive(prometheus):
    found = prometheus.get(
        "query_exemplars", query='tailtrace_deschedule_seconds_bucket{tenant="chat"}', start="0"
    )

    labels = [exemplar["labels"] for series in found for exemplar in series["exemplars"]]
    assert {"step": "4711", "aggressor": "grpc-worker"} in labels
