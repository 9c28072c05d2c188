"""One node: what its inference threads wait for, and who has the CPU meanwhile."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.panels import (
    CHOSEN_NODES,
    NUMBER,
    SECONDS,
    SHARE,
    WINDOW,
    aggressors,
    heat_map,
    node_choice,
    over_time,
    page,
)
from dashboards.promql import rate, selector, sum_by
from dashboards.rules import P999_BY_CAUSE
from tracer.catalog import (
    DESCHEDULE,
    STEAL,
    STEP_ELAPSED,
    STEP_SECONDS,
    TARGETS,
    Metric,
)


def dashboard() -> Dashboard:
    return page(
        "node",
        "Node",
        "What the inference threads of a node wait for, and who has the CPU meanwhile.",
        [node_choice()],
        [
            heat_map("Deschedules", DESCHEDULE.help, SECONDS, _sum(["le"], DESCHEDULE, "bucket")),
            heat_map("Steps", STEP_ELAPSED.help, SECONDS, _sum(["le"], STEP_ELAPSED, "bucket")),
            over_time(
                "Where step time goes",
                STEP_SECONDS.help + " Mean number of steps in each state.",
                NUMBER,
                ("{{cause}}", _sum(["cause"], STEP_SECONDS)),
                stacked=True,
            ),
            over_time(
                "p999 deschedule by cause",
                P999_BY_CAUSE.help,
                SECONDS,
                ("{{tenant}} {{cause}}", f"{P999_BY_CAUSE.name}{{{CHOSEN_NODES}}}"),
            ),
            aggressors("Who has the CPU meanwhile", "{{aggressor}}", ["aggressor"], CHOSEN_NODES),
            over_time(
                "Steal by CPU",
                "Share of the CPU's time that the hypervisor took. " + STEAL.help,
                SHARE,
                ("CPU {{cpu}} {{instance}}", rate(STEAL, WINDOW, matchers=CHOSEN_NODES)),
            ),
            over_time(
                "Traced processes",
                TARGETS.help,
                NUMBER,
                ("{{tenant}}", sum_by(["tenant"], selector(TARGETS, matchers=CHOSEN_NODES))),
                stacked=True,
            ),
        ],
    )


def _sum(labels: list[str], metric: Metric, part: str = "") -> str:
    return sum_by(labels, rate(metric, WINDOW, part, CHOSEN_NODES))
