"""One tenant: its steps over time, what they are made of, and who makes them slow."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.panels import (
    CHOSEN_NODES,
    NUMBER,
    SECONDS,
    WINDOW,
    Panel,
    Query,
    aggressors,
    choice,
    heat_map,
    node_choice,
    over_time,
    page,
    ranking,
)
from dashboards.promql import quantile, rate, selector, sum_by
from dashboards.rules import EXPLAINS_TAIL, P999_DESCHEDULE, STEP_RATIO
from tracer.catalog import (
    DESCHEDULE_P999,
    DESCHEDULE_WINDOW_COUNT,
    HELPER_WAIT,
    HINT_FAULTS,
    NUMA_BALANCING,
    NUMA_MIGRATIONS,
    PAGE_ALLOCATIONS,
    PAGE_FAULTS,
    QUEUE_WAIT,
    STEP_ELAPSED,
    STEP_SECONDS,
    TARGETS,
    THREAD_MOVES,
    Metric,
)
from tracer.catalog import STEP_RATIO as STEP_RATIO_OF_WINDOW

_TENANT = f'{CHOSEN_NODES}, tenant=~"$tenant"'
_STEP = f'{_TENANT}, step=~"$step"'
_STEPS = sum_by(["tenant", "step"], rate(STEP_ELAPSED, WINDOW, "count", _STEP))


def dashboard() -> Dashboard:
    return page(
        "tenant",
        "Tenant",
        "A tenant's steps over time, what they are made of, and who makes them slow.",
        [
            node_choice(),
            choice("tenant", "Tenants on these nodes.", f"{TARGETS.name}{{{CHOSEN_NODES}}}"),
            choice("step", "Their kinds of steps.", f"{STEP_ELAPSED.name}_count{{{_TENANT}}}"),
        ],
        [*_steps(), *_causes(), *_waits(), *_memory(), *_of_the_agents_window()],
    )


def _steps() -> list[Panel]:
    return [
        over_time(
            "Step time",
            STEP_ELAPSED.help,
            SECONDS,
            *_quantiles(STEP_ELAPSED, ["tenant", "step"], _STEP, 0.5, 0.99, 0.999),
        ),
        heat_map(
            "Steps",
            STEP_ELAPSED.help,
            SECONDS,
            sum_by(["le"], rate(STEP_ELAPSED, WINDOW, "bucket", _STEP)),
        ),
        over_time(
            "Step p999 over median",
            STEP_RATIO.help,
            NUMBER,
            ("{{tenant}} {{step}} {{instance}}", f"{STEP_RATIO.name}{{{_STEP}}}"),
        ),
        ranking(
            "What explains the tail",
            EXPLAINS_TAIL.help,
            NUMBER,
            f"{EXPLAINS_TAIL.name}{{{_STEP}}}",
        ),
    ]


def _causes() -> list[Panel]:
    return [
        over_time(
            "Ledger of the mean step",
            STEP_SECONDS.help,
            SECONDS,
            ("{{tenant}} {{step}} {{cause}}", _per_step(STEP_SECONDS, "tenant", "step", "cause")),
            stacked=True,
        ),
        aggressors(
            "Who has the CPU while the tenant waits for it",
            "{{aggressor}}, {{cause}}",
            ["aggressor", "cause"],
            f'{CHOSEN_NODES}, victim=~"$tenant"',
        ),
        over_time(
            "Helpers kept from running, per step",
            HELPER_WAIT.help,
            SECONDS,
            ("{{tenant}} {{step}}", _per_step(HELPER_WAIT, "tenant", "step")),
        ),
    ]


def _waits() -> list[Panel]:
    return [
        over_time(
            "p999 deschedule",
            P999_DESCHEDULE.help,
            SECONDS,
            ("{{tenant}} {{instance}}", f"{P999_DESCHEDULE.name}{{{_TENANT}}}"),
        ),
        over_time(
            "Queue wait",
            QUEUE_WAIT.help,
            SECONDS,
            *_quantiles(QUEUE_WAIT, ["tenant"], _TENANT, 0.5, 0.99),
        ),
    ]


def _memory() -> list[Panel]:
    return [
        _events("Page faults", PAGE_FAULTS),
        _events("New pages", PAGE_ALLOCATIONS),
        _events("Hint faults of NUMA balancing", HINT_FAULTS),
        _events("Pages moved", NUMA_MIGRATIONS),
        _events("Threads moved", THREAD_MOVES),
        _events("NUMA balancing of threads", NUMA_BALANCING),
    ]


def _events(title: str, metric: Metric) -> Panel:
    """How many a second."""
    each = sum_by(["tenant", "kind"], rate(metric, WINDOW, matchers=_TENANT))
    return over_time(title, metric.help, NUMBER, ("{{tenant}} {{kind}}", each))


def _of_the_agents_window() -> list[Panel]:
    return [
        over_time(
            "p999 deschedule, as the agent computes it",
            f"{DESCHEDULE_P999.help} From finer buckets than Prometheus has.",
            SECONDS,
            ("{{tenant}} {{instance}}", selector(DESCHEDULE_P999, matchers=_TENANT)),
        ),
        over_time(
            "Deschedules in the agent's window",
            DESCHEDULE_WINDOW_COUNT.help,
            NUMBER,
            ("{{tenant}} {{instance}}", selector(DESCHEDULE_WINDOW_COUNT, matchers=_TENANT)),
        ),
        over_time(
            "Step p999 over median, as the agent computes it",
            f"{STEP_RATIO_OF_WINDOW.help} From finer buckets than Prometheus has.",
            NUMBER,
            ("{{tenant}} {{step}} {{instance}}", selector(STEP_RATIO_OF_WINDOW, matchers=_STEP)),
        ),
    ]


def _quantiles(metric: Metric, labels: list[str], matchers: str, *qs: float) -> list[Query]:
    """Over all nodes together: a quantile of their summed buckets."""
    legend = " ".join(f"{{{{{label}}}}}" for label in labels)
    buckets = sum_by([*labels, "le"], rate(metric, WINDOW, "bucket", matchers))
    return [(f"{legend} p{q * 100:g}", quantile(q, buckets)) for q in qs]


def _per_step(metric: Metric, *labels: str) -> str:
    seconds = sum_by(labels, rate(metric, WINDOW, matchers=_STEP))
    return f"{seconds} / on (tenant, step) group_left () {_STEPS}"
