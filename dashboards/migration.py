"""Migration: how it was before, beside how it is now."""

from __future__ import annotations

from collections.abc import Callable

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.panels import (
    CHOSEN_NODES,
    DISTANCE,
    NUMBER,
    SECONDS,
    WINDOW,
    Panel,
    aggressors,
    choice,
    distance,
    heat_map,
    node_choice,
    number,
    over_time,
    page,
)
from dashboards.promql import quantile, rate, sum_by
from tracer.catalog import DESCHEDULE, STEP_ELAPSED, STEP_SECONDS, TARGETS

_TENANT = f'{CHOSEN_NODES}, tenant=~"$tenant"'
_STEP = f'{_TENANT}, step=~"$step"'


def dashboard() -> Dashboard:
    return page(
        "migration",
        "Migration",
        "How steps were before a migration, at the left, and are now, at the right. The time range "
        "is the one after; choose the nodes of both. For a verdict: tailtrace compare.",
        [
            distance(),
            node_choice(),
            choice("tenant", "Tenants on these nodes.", f"{TARGETS.name}{{{CHOSEN_NODES}}}"),
            choice("step", "Their kinds of steps.", f"{STEP_ELAPSED.name}_count{{{_TENANT}}}"),
        ],
        [
            *_pair(_worst_ratio),
            *_pair(_worst_deschedule),
            *_pair(_step_time),
            *_pair(_steps),
            *_pair(_ledger),
            *_pair(_deschedules),
            *_pair(_aggressors),
        ],
    )


def _pair(panel: Callable[[str, str], Panel]) -> list[Panel]:
    return [panel("Before", DISTANCE), panel("After", "")]


def _worst_ratio(when: str, offset: str) -> Panel:
    return number(
        f"{when}: worst step p999 over median",
        "1 is a step without a tail.",
        NUMBER,
        f"max({_step_quantile(0.999, offset)} / {_step_quantile(0.5, offset)})",
    )


def _worst_deschedule(when: str, offset: str) -> Panel:
    buckets = rate(DESCHEDULE, WINDOW, "bucket", _TENANT, offset)
    return number(
        f"{when}: worst p999 deschedule",
        DESCHEDULE.help,
        SECONDS,
        f"max({quantile(0.999, sum_by(['tenant', 'le'], buckets))})",
    )


def _step_time(when: str, offset: str) -> Panel:
    queries = (
        (f"{{{{tenant}}}} {{{{step}}}} p{q * 100:g}", _step_quantile(q, offset))
        for q in (0.5, 0.99, 0.999)
    )
    return over_time(f"{when}: step time", STEP_ELAPSED.help, SECONDS, *queries)


def _steps(when: str, offset: str) -> Panel:
    buckets = rate(STEP_ELAPSED, WINDOW, "bucket", _STEP, offset)
    return heat_map(f"{when}: steps", STEP_ELAPSED.help, SECONDS, sum_by(["le"], buckets))


def _ledger(when: str, offset: str) -> Panel:
    seconds = sum_by(["tenant", "step", "cause"], rate(STEP_SECONDS, WINDOW, "", _STEP, offset))
    steps = sum_by(["tenant", "step"], rate(STEP_ELAPSED, WINDOW, "count", _STEP, offset))
    return over_time(
        f"{when}: ledger of the mean step",
        STEP_SECONDS.help,
        SECONDS,
        ("{{tenant}} {{step}} {{cause}}", f"{seconds} / on (tenant, step) group_left () {steps}"),
        stacked=True,
    )


def _deschedules(when: str, offset: str) -> Panel:
    buckets = rate(DESCHEDULE, WINDOW, "bucket", _TENANT, offset)
    return heat_map(f"{when}: deschedules", DESCHEDULE.help, SECONDS, sum_by(["le"], buckets))


def _aggressors(when: str, offset: str) -> Panel:
    return aggressors(
        f"{when}: who has the CPU meanwhile",
        "{{aggressor}}, {{cause}}",
        ["aggressor", "cause"],
        f'{CHOSEN_NODES}, victim=~"$tenant"',
        offset,
    )


def _step_quantile(q: float, offset: str) -> str:
    buckets = rate(STEP_ELAPSED, WINDOW, "bucket", _STEP, offset)
    return quantile(q, sum_by(["tenant", "step", "le"], buckets))
