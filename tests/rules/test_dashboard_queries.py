"""Every query of every panel and variable, asked of a Prometheus that scraped a full node."""

from __future__ import annotations

import re

import pytest

from tests.rules.panels import CHOICES, QUERIES, filled


@pytest.mark.parametrize("expression", QUERIES.values(), ids=QUERIES.keys())
def test_a_panel_gets_data(prometheus, expression):
    series = prometheus.query(filled(expression))

    assert series
    assert "NaN" not in {row["value"][1] for row in series}


@pytest.mark.parametrize("query", CHOICES.values(), ids=CHOICES.keys())
def test_a_variable_has_values_to_choose_from(prometheus, query):
    selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", query).groups()

    assert prometheus.get(f"label/{label}/values", **{"match[]": filled(selector)})
