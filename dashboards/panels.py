"""The kinds of panel that the dashboards are made of, each with title, description and unit."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as dashboard_builders
from grafana_foundation_sdk.builders import heatmap, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.promql import rate, sum_by, top
from tracer.catalog import BLAME, SELF_MEMORY

SECONDS, BYTES, SHARE, NUMBER = "s", "bytes", "percentunit", "short"
"""Units, by Grafana's names. A share is of one CPU, or of all time."""

WINDOW = "$__rate_interval"
CHOSEN_NODES = 'instance=~"$instance"'
"""Matches what ``node_choice`` offers."""

DISTANCE = "$distance"
"""What ``distance`` was set to."""

DATA_SOURCE = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
TAG = "tailtrace"

Panel = Builder[dashboard.Panel]
Variable = Builder[dashboard.VariableModel]
Query = tuple[str, str]
"""Legend and expression."""


def page(
    name: str, title: str, description: str, variables: Sequence[Variable], panels: Sequence[Panel]
) -> dashboard.Dashboard:
    """A dashboard. The data source is a variable, and links lead to the others of its kind."""
    made = (
        dashboard_builders.Dashboard(f"Tailtrace / {title}")
        .uid(f"tailtrace-{name}")
        .description(description)
        .tags([TAG])
        .time("now-1h", "now")
        .refresh("30s")
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .link(_links())
        .with_variable(dashboard_builders.DatasourceVariable("datasource").type("prometheus"))
    )
    for variable in variables:
        made.with_variable(variable)
    for panel in panels:
        made.with_panel(panel)
    return made.build()


def _links() -> dashboard_builders.DashboardLink:
    return (
        dashboard_builders.DashboardLink("tailtrace")
        .type(dashboard.DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .keep_time(True)
        .include_vars(True)
    )


def choice(label: str, description: str, series: str) -> Variable:
    """A variable over a label's values in the series; several may be chosen, at first all."""
    return (
        dashboard_builders.QueryVariable(label)
        .description(description)
        .datasource(DATA_SOURCE)
        .query(f"label_values({series}, {label})")
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.NATURAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
    )


def node_choice() -> Variable:
    return choice("instance", "Nodes that are traced.", SELF_MEMORY.name)


def distance() -> Variable:
    """How long ago it was that is shown beside what is."""
    return (
        dashboard_builders.TextBoxVariable(DISTANCE.removeprefix("$"))
        .description("From the range before to the range after, such as 90m, 1d or 2w.")
        .default_value("1d")
    )


def over_time(
    title: str, description: str, unit: str, *queries: Query, stacked: bool = False
) -> Panel:
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .min(0)
        .datasource(DATA_SOURCE)
        .span(12)
        .legend(_legend())
        .fill_opacity(60 if stacked else 0)
    )
    if stacked:
        stacking = common_builders.StackingConfig().mode(common.StackingMode.NORMAL)
        panel.stacking(stacking)
    for name, (legend, expression) in zip(ascii_uppercase, queries, strict=False):
        panel.with_target(_query(expression, name).range().legend_format(legend))
    return panel


def _legend() -> common_builders.VizLegendOptions:
    return (
        common_builders.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.TABLE)
        .placement(common.LegendPlacement.RIGHT)
        .calcs(["mean", "max"])
        .show_legend(True)
    )


def aggressors(
    title: str, legend: str, labels: Sequence[str], matchers: str = "", offset: str = ""
) -> Panel:
    """Who had the CPU while threads waited for it."""
    return over_time(
        title,
        f"{BLAME.help} Shown as the mean number of threads that waited.",
        NUMBER,
        (legend, top(10, sum_by(labels, rate(BLAME, WINDOW, "", matchers, offset)))),
        stacked=True,
    )


def heat_map(title: str, description: str, unit: str, buckets: str) -> Panel:
    """How many observations a second fell into each bucket."""
    target = _query(buckets).range().format(PromQueryFormat.HEATMAP).legend_format("{{le}}")
    colours = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Oranges")
    return (
        heatmap.Panel()
        .title(title)
        .description(description)
        .unit("short")
        .datasource(DATA_SOURCE)
        .span(12)
        .y_axis(heatmap.YAxisConfig().unit(unit))
        .color(colours.steps(64))
        .with_target(target)
    )


def number(title: str, description: str, unit: str, expression: str) -> Panel:
    last = common_builders.ReduceDataOptions().calcs(["lastNotNull"])
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(DATA_SOURCE)
        .span(6)
        .height(4)
        .reduce_options(last)
        .with_target(_query(expression).instant())
    )


def ranking(title: str, description: str, unit: str, expression: str) -> Panel:
    """A table of the series as they are now, the greatest first."""
    greatest = common_builders.TableSortByFieldState().display_name("Value").desc(True)
    hidden = dict.fromkeys(["Time", "__name__", "job"], True)
    return (
        table.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(DATA_SOURCE)
        .span(12)
        .sort_by([greatest])
        .with_transformation(
            dashboard.DataTransformerConfig("organize", options={"excludeByName": hidden})
        )
        .with_target(_query(expression).instant().format(PromQueryFormat.TABLE))
    )


def _query(expression: str, name: str = "A") -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(expression).ref_id(name).datasource(DATA_SOURCE)
