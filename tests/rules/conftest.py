"""A page with every metric, and a real Prometheus that has scraped it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from dashboards.alerts import Objectives, groups
from dashboards.rules import RECORDS
from exporters.live import Live
from exporters.prometheus import Page
from exporters.server import serving
from tests.rules.node import node
from tests.rules.panels import AGO
from tests.rules.prometheus_server import Prometheus, running_prometheus, wait_until


@pytest.fixture(scope="session")
def full_page() -> Page:
    page = Page(interval_seconds=3600)
    page.publish(node(seconds=60))
    return page


@pytest.fixture(scope="session")
def prometheus(full_page: Page, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Scraped the page twice, a minute of the node's life apart, and evaluated the rules."""
    directory = tmp_path_factory.mktemp("prometheus")
    rules = directory / "rules.yaml"
    rules.write_text(yaml.safe_dump(groups(Objectives())))
    with (
        serving(("127.0.0.1", 0), full_page, Live("node")) as address,
        running_prometheus(directory, address, [rules]) as prometheus,
    ):
        wait_until(lambda: prometheus.query("tailtrace_self_drain_seconds_total == 30"))
        full_page.publish(node(seconds=120))
        wait_until(lambda: prometheus.query("tailtrace_self_drain_seconds_total == 60"))
        wait_until(
            lambda: prometheus.query(f"tailtrace_self_drain_seconds_total offset {AGO} == 60")
        )
        wait_until(lambda: prometheus.query(RECORDS[-1].name))
        yield prometheus
