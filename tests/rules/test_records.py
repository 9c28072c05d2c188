"""Recording rules in a real Prometheus: all evaluate, and give the figures that they promise."""

from __future__ import annotations

import numpy as np
import pytest

from dashboards.rules import (
    DRIFT,
    P999_BY_CAUSE,
    P999_DESCHEDULE,
    PER_STEP,
    RECORDS,
    STEP_P50,
    STEP_RATIO,
    STEP_TAIL,
)
from tests.rules.node import EDGES, LABEL_VALUES, PER_SECOND


def exact(q: float) -> float:
    """The quantile of the node's histograms, interpolated within the bucket as Prometheus does."""
    below = PER_SECOND.cumsum()
    return float(np.interp(q * below[-1], [0, *below[:-1]], [0, *EDGES]))


EXACT = {
    P999_DESCHEDULE: exact(0.999),
    P999_BY_CAUSE: exact(0.999),
    STEP_P50: exact(0.5),
    STEP_RATIO: exact(0.999) / exact(0.5),
    STEP_TAIL: exact(0.999) - exact(0.5),
    DRIFT: 1.0,
    PER_STEP: 0.5 / PER_SECOND.sum(),
}


def test_every_rule_evaluates(prometheus):
    rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]

    assert len(rules) > len(RECORDS)
    assert [rule for rule in rules if rule["health"] != "ok"] == []


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_every_record_has_figures_per_tenant_or_node_and_instance(prometheus, record):
    series = prometheus.query(record.name)

    of = "node" if record is DRIFT else "tenant"
    assert {row["metric"][of] for row in series} == {*LABEL_VALUES[of]}
    assert all({"instance", "job"} <= row["metric"].keys() for row in series)


@pytest.mark.parametrize("record", EXACT, ids=lambda record: record.name)
def test_figures_are_those_of_the_node(prometheus, record):
    figures = [float(row["value"][1]) for row in prometheus.query(record.name)]

    assert figures == pytest.approx([EXACT[record]] * len(figures), rel=1e-6)


def test_the_users_names_have_no_label_but_theirs_and_the_scrapes(prometheus):
    for name, labels in {
        "p999_deschedule": {"tenant"},
        "step_elapsed_p999_p50": {"tenant", "step"},
        "numastat_drift": {"node"},
    }.items():
        for row in prometheus.query(name):
            assert row["metric"].keys() == labels | {"__name__", "instance", "job"}
