"""The dashboards as Grafana reads them: complete, within the catalog, and without overlap."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.__main__ import DASHBOARDS, main
from dashboards.rules import RECORDS
from tracer.catalog import METRICS, Metric, Type

UNITS = {"s", "bytes", "percentunit", "short"}
BUILT_IN = {"__rate_interval"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    directory = tmp_path_factory.mktemp("dashboards")
    main(["build", str(directory)])
    return {path.stem: json.loads(path.read_text()) for path in directory.iterdir()}


def expressions(dashboard: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def test_each_has_a_file_named_by_its_uid(built):
    assert len(built) == len(DASHBOARDS)
    assert all(dashboard["uid"] == name for name, dashboard in built.items())
    assert all(name.startswith("tailtrace-") for name in built)


def test_each_is_read_back_without_loss(built):
    register_default_plugins()

    for dashboard in built.values():
        assert json.loads(json.dumps(Dashboard.from_json(dashboard).to_json(), default=_inner)) == (
            dashboard
        )


def _inner(value: Any) -> Any:
    return value.to_json()


def test_each_panel_has_title_description_and_unit(built):
    for dashboard in built.values():
        titles = [panel["title"] for panel in dashboard["panels"]]
        assert sorted(set(titles)) == sorted(titles)
        for panel in dashboard["panels"]:
            assert re.fullmatch(r"(\d|[A-Z]).+\.", panel["description"]), panel["title"]
            assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
            assert panel["datasource"]["uid"] == "${datasource}"


def test_each_query_of_a_panel_has_a_name_of_its_own(built):
    for dashboard in built.values():
        for panel in dashboard["panels"]:
            names = [target["refId"] for target in panel["targets"]]
            assert sorted(set(names)) == names


def series_of(metric: Metric) -> set[str]:
    if metric.type is not Type.HISTOGRAM:
        return {metric.name}
    return {f"{metric.name}_{part}" for part in ("bucket", "count", "sum")}


def names_in(dashboard: dict[str, Any]) -> set[str]:
    """Metrics and records that a dashboard asks for."""
    pattern = r"\btailtrace[a-z0-9_:]+|\bp999_\w+|\bstep_elapsed_\w+"
    return {name for each in expressions(dashboard) for name in re.findall(pattern, each)}


def test_queries_name_only_what_exists(built):
    known = {record.name for record in RECORDS}.union(*(series_of(m) for m in METRICS))

    for dashboard in built.values():
        assert names_in(dashboard)
        assert names_in(dashboard) - known == set()


def test_every_metric_is_on_some_dashboard(built):
    shown = set().union(*(names_in(dashboard) for dashboard in built.values()))

    assert [metric.name for metric in METRICS if not series_of(metric) & shown] == []


def test_variables_are_declared_where_they_are_used(built):
    for dashboard in built.values():
        declared = {variable["name"] for variable in dashboard["templating"]["list"]}
        used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard["panels"])))
        assert used - BUILT_IN == declared
        assert "datasource" in declared


def test_panels_do_not_overlap(built):
    for dashboard in built.values():
        taken: set[tuple[int, int]] = set()
        for panel in dashboard["panels"]:
            at = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(at["x"], at["x"] + at["w"])
                for y in range(at["y"], at["y"] + at["h"])
            }
            assert not cells & taken, panel["title"]
            taken |= cells
            assert at["x"] + at["w"] <= 24
