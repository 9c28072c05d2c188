"""Every query of every panel and variable, asked of a Prometheus that scraped a full node."""

from __future__ import annotations

import re

import pytest

from dashboards.__main__ import DASHBOARDS
from dashboards.panels import DISTANCE
from tests.rules.conftest import AGO

MADE = [module.dashboard() for module in DASHBOARDS]
QUERIES = {
    f"{dashboard.uid}: {panel.title} {target.ref_id}": target.expr
    for dashboard in MADE
    for panel in dashboard.panels
    for target in panel.targets
}
CHOICES = {
    f"{dashboard.uid}: {variable.name}": variable.query
    for dashboard in MADE
    for variable in dashboard.templating.list_val
    if variable.type_val == "query"
}


def filled(expression: str) -> str:
    """The expression with every variable at what Grafana puts for all of its values."""
    durations = expression.replace("$__rate_interval", "1h").replace(DISTANCE, AGO)
    return re.sub(r"\$\w+", ".*", durations)


@pytest.mark.parametrize("expression", QUERIES.values(), ids=QUERIES.keys())
def test_a_panel_gets_data(prometheus, expression):
    series = prometheus.query(filled(expression))

    assert series
    assert "NaN" not in {row["value"][1] for row in series}


@pytest.mark.parametrize("query", CHOICES.values(), ids=CHOICES.keys())
def test_a_variable_has_values_to_choose_from(prometheus, query):
    selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", query).groups()

    assert prometheus.get(f"label/{label}/values", **{"match[]": filled(selector)})
