"""Every alert has a page that a person on call can follow."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dashboards.alerts import Objectives, alerts

DOCS = Path(__file__).parents[2] / "docs"
ALERTS = {alert.name: alert for alert in alerts(Objectives())}


def test_each_alert_has_its_page_and_each_page_its_alert():
    assert {page.stem for page in (DOCS / "runbooks").glob("*.md")} == ALERTS.keys()


@pytest.mark.parametrize("name", ALERTS)
def test_a_page_says_what_it_means_how_to_check_and_what_to_do(name):
    page = (DOCS / "runbooks" / f"{name}.md").read_text()

    assert re.findall(r"^#+ (.+)$", page, re.MULTILINE) == [name, "What it means", "Check", "Do"]


@pytest.mark.parametrize("name", ALERTS)
def test_severity_and_delay_in_the_documentation_are_those_of_the_rules(name):
    row = next(
        line for line in (DOCS / "prometheus.md").read_text().splitlines() if f"[{name}]" in line
    )

    _, severity, after, _ = (cell.strip() for cell in row.strip("|").split("|"))
    assert (severity, after.replace(" min", "m")) == (ALERTS[name].severity, ALERTS[name].hold)
