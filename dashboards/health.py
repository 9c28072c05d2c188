"""The tracer itself: what it costs, what it loses, what it cannot tell."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.panels import (
    BYTES,
    CHOSEN_NODES,
    NUMBER,
    SHARE,
    WINDOW,
    node_choice,
    over_time,
    page,
    ranking,
)
from dashboards.promql import rate, selector
from tracer.catalog import (
    LOST,
    MACHINE,
    PROBE_AVAILABLE,
    SELF_BPF,
    SELF_CPU,
    SELF_DRAIN,
    SELF_MEMORY,
    SELF_PLACEMENT,
    Metric,
)


def dashboard() -> Dashboard:
    return page(
        "health",
        "Tracer health",
        "What the tracer itself costs, what it loses, and what it cannot tell.",
        [node_choice()],
        [
            over_time("Agent CPU", SELF_CPU.help, SHARE, ("{{instance}}", _rate(SELF_CPU))),
            over_time(
                "Agent memory",
                SELF_MEMORY.help,
                BYTES,
                ("{{instance}}", selector(SELF_MEMORY, matchers=CHOSEN_NODES)),
            ),
            over_time(
                "BPF programs", SELF_BPF.help, SHARE, ("{{hook}} {{instance}}", _rate(SELF_BPF))
            ),
            over_time(
                "Joining marks with kernel records",
                SELF_DRAIN.help,
                SHARE,
                ("{{instance}}", _rate(SELF_DRAIN)),
            ),
            over_time(
                "Looking where memory is",
                SELF_PLACEMENT.help,
                SHARE,
                ("{{instance}}", _rate(SELF_PLACEMENT)),
            ),
            over_time(
                "Lost, each second",
                LOST.help,
                NUMBER,
                ("{{reason}} {{instance}}", _rate(LOST)),
            ),
            ranking(
                "Machines and agents",
                MACHINE.help,
                NUMBER,
                selector(MACHINE, matchers=CHOSEN_NODES),
            ),
            ranking(
                "What can be told, and where not",
                PROBE_AVAILABLE.help,
                NUMBER,
                selector(PROBE_AVAILABLE, matchers=CHOSEN_NODES),
            ),
        ],
    )


def _rate(metric: Metric) -> str:
    return rate(metric, WINDOW, matchers=CHOSEN_NODES)
