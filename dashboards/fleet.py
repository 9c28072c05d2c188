"""Fleet overview: which nodes and tenants suffer most, and from what."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.panels import (
    NUMBER,
    SECONDS,
    SHARE,
    WINDOW,
    aggressors,
    number,
    over_time,
    page,
    ranking,
)
from dashboards.promql import rate, sum_by, top
from dashboards.rules import EXPLAINS_TAIL, P999_DESCHEDULE, STEP_RATIO
from tracer.catalog import DESCHEDULE, SELF_MEMORY, STEAL, TARGETS


def dashboard() -> Dashboard:
    worst_ratio = top(10, STEP_RATIO.name)
    worst_p999 = top(10, P999_DESCHEDULE.name)
    return page(
        "fleet",
        "Fleet",
        "Which nodes and tenants suffer most, and from what.",
        [],
        [
            number("Nodes", "Tracers that are scraped.", NUMBER, f"count({SELF_MEMORY.name})"),
            number("Processes", TARGETS.help, NUMBER, f"sum({TARGETS.name})"),
            number("Worst step ratio", STEP_RATIO.help, NUMBER, f"max({STEP_RATIO.name})"),
            number(
                "Worst p999 deschedule",
                P999_DESCHEDULE.help,
                SECONDS,
                f"max({P999_DESCHEDULE.name})",
            ),
            ranking("Steps with the worst tail", STEP_RATIO.help, NUMBER, worst_ratio),
            ranking(
                "What explains the tails",
                EXPLAINS_TAIL.help,
                NUMBER,
                top(10, EXPLAINS_TAIL.name),
            ),
            over_time(
                "Step p999 over median",
                STEP_RATIO.help,
                NUMBER,
                ("{{tenant}} {{step}} {{instance}}", worst_ratio),
            ),
            over_time(
                "p999 deschedule",
                P999_DESCHEDULE.help,
                SECONDS,
                ("{{tenant}} {{instance}}", worst_p999),
            ),
            over_time(
                "Threads kept from running, by cause",
                "Mean number of inference threads that were runnable and did not execute.",
                NUMBER,
                ("{{cause}}", sum_by(["cause"], rate(DESCHEDULE, WINDOW, "sum"))),
                stacked=True,
            ),
            aggressors(
                "Who takes the CPU from whom",
                "{{aggressor}} from {{victim}}",
                ["victim", "aggressor"],
            ),
            over_time(
                "Nodes with the most steal",
                "Share of its CPUs' time that the hypervisor took. " + STEAL.help,
                SHARE,
                ("{{instance}}", top(10, f"avg by (instance) ({rate(STEAL, WINDOW)})")),
            ),
        ],
    )
