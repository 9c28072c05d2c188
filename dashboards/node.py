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
from dashboards.promql import rate, selector, sum_by, top, without_stages
from dashboards.rules import P999_BY_CAUSE
from tracer.catalog import (
    DESCHEDULE,
    NUMASTAT_DRIFT,
    NUMASTAT_PAGES,
    PLACEMENT_MISMATCH,
    PLACEMENT_PAGES,
    STALL,
    STEAL,
    STEP_ELAPSED,
    STEP_SECONDS,
    TARGETS,
    TIMER_EXPIRIES,
    TIMER_LATE,
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
            heat_map("Steps", STEP_ELAPSED.help, SECONDS, _of_steps("le", STEP_ELAPSED, "bucket")),
            over_time(
                "Where step time goes",
                STEP_SECONDS.help + " Mean number of steps in each state.",
                NUMBER,
                ("{{cause}}", _of_steps("cause", STEP_SECONDS)),
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
                "CPUs that stood still",
                "Share of the time by which CPUs stood still together. " + STALL.help,
                SHARE,
                ("{{scope}} {{instance}}", rate(STALL, WINDOW, "sum", CHOSEN_NODES)),
                stacked=True,
            ),
            heat_map("Stalls of CPUs", STALL.help, SECONDS, _sum(["le"], STALL, "bucket")),
            over_time(
                "Lateness of timers",
                "Of a hard timer on average, stalls left out: what a CPU needs to answer.",
                SECONDS,
                ("CPU {{cpu}} {{instance}}", _each(TIMER_LATE, TIMER_EXPIRIES)),
            ),
            over_time(
                "Remote allocations by node",
                "Share of pages that went to CPUs of other nodes. " + NUMASTAT_PAGES.help,
                SHARE,
                ("node {{node}} {{instance}}", f"{_allocated('other')} / {_allocated()}"),
                ("more than usual, node {{node}}", f"{NUMASTAT_DRIFT.name}{{{CHOSEN_NODES}}}"),
            ),
            over_time(
                "Memory away from threads",
                PLACEMENT_MISMATCH.help,
                SHARE,
                ("{{tenant}}", f"{PLACEMENT_MISMATCH.name}{{{CHOSEN_NODES}}}"),
            ),
            over_time(
                "Where memory is",
                PLACEMENT_PAGES.help,
                NUMBER,
                (
                    "{{tenant}} {{segment}} node {{node}}",
                    top(20, f"{PLACEMENT_PAGES.name}{{{CHOSEN_NODES}}}"),
                ),
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


def _allocated(counters: str = "other|local") -> str:
    chosen = f'{CHOSEN_NODES}, counter=~"{counters}"'
    return sum_by(["instance", "node"], rate(NUMASTAT_PAGES, WINDOW, matchers=chosen))


def _sum(labels: list[str], metric: Metric, part: str = "") -> str:
    return sum_by(labels, rate(metric, WINDOW, part, CHOSEN_NODES))


def _of_steps(label: str, metric: Metric, part: str = "") -> str:
    return sum_by([label], without_stages(rate(metric, WINDOW, part, CHOSEN_NODES)))


def _each(total: Metric, number: Metric) -> str:
    a, b = (rate(metric, WINDOW, matchers=CHOSEN_NODES) for metric in (total, number))
    return f"{a} / {b}"
