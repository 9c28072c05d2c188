"""
Each alert before promtool: fires where it must, stays silent where it must.

Every case states all alerts that fire in it; any other that fires fails the case.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.alerts import Objectives, alerts, groups
from tracer.catalog import (
    BLAME,
    CAPABILITIES,
    CAUSES,
    DESCHEDULE,
    DESCHEDULES,
    LOSSES,
    LOST,
    NUMASTAT_DRIFT,
    PLACEMENT_MISMATCH,
    PROBE_AVAILABLE,
    STALL,
    STEAL,
    STEP_ELAPSED,
    STEP_SECONDS,
    Metric,
)

IDLE = "an idle node: everything is there and nothing moves"
OBJECTIVES = Objectives(runbooks="https://runbooks.example")
ALERTS = {alert.name: alert for alert in alerts(OBJECTIVES)}
INTERVAL_SECONDS = 15
SAMPLES = 3660 // INTERVAL_SECONDS

Series = dict[str, str]
"""Series -> values in promtool's notation, one each 15 s for an hour and a minute."""


@dataclass(frozen=True)
class Firing:
    labels: Mapping[str, str]
    description: str


def series(metric: Metric, each: float, suffix: str = "", **labels: str) -> Series:
    """A series that grows by so much each second."""
    given = {"instance": "a", "job": "tailtrace", **labels}
    selector = ",".join(f'{name}="{value}"' for name, value in given.items())
    return {f"{metric.name}{suffix}{{{selector}}}": f"0+{each * INTERVAL_SECONDS:g}x{SAMPLES}"}


def constant(metric: Metric, value: float, **labels: str) -> Series:
    """A series that has this value from the first scrape on."""
    return dict.fromkeys(series(metric, 0, **labels), f"{value:g}x{SAMPLES}")


def histogram(metric: Metric, below: Mapping[str, float], **labels: str) -> Series:
    """Cumulative observations a second, by upper bound."""
    total = max(below.values())
    buckets = {**below, "+Inf": total}
    made = [series(metric, n, "_bucket", **labels, le=edge) for edge, n in buckets.items()]
    return merged(*made, series(metric, total, "_count", **labels))


def steps(below: Mapping[str, float]) -> Series:
    return histogram(STEP_ELAPSED, below, tenant="chat", step="decode")


def spent(cause: str, seconds: float) -> Series:
    """Seconds of the steps' time a second that a cause took."""
    return series(STEP_SECONDS, seconds, tenant="chat", step="decode", cause=cause)


def descheduled(cause: str, seconds: float, below: Mapping[str, float]) -> Series:
    waits = histogram(DESCHEDULE, below, tenant="chat", cause=cause)
    return merged(spent(cause, seconds), waits)


def stalls(scope: str, seconds: float) -> Series:
    """Seconds a second, in stalls of 0.1 to 0.5 s."""
    return merged(
        histogram(STALL, {"0.1": 0, "0.5": seconds / 0.3}, scope=scope),
        series(STALL, seconds, "_sum", scope=scope),
    )


def blamed(**seconds: float) -> Series:
    return merged(
        *(
            series(BLAME, each, victim="chat", aggressor=aggressor, cause="preempted")
            for aggressor, each in seconds.items()
        )
    )


def drift(values: float | str) -> Series:
    """Of one node: a value, or promtool's notation for several."""
    shown = values if isinstance(values, str) else f"{values}x{SAMPLES}"
    return {f'{NUMASTAT_DRIFT.name}{{instance="a",job="tailtrace",node="0"}}': shown}


def apart(**tenants: float) -> Series:
    """How far the memory of each tenant is from its threads."""
    return merged(
        *(constant(PLACEMENT_MISMATCH, value, tenant=name) for name, value in tenants.items())
    )


def up(value: int) -> Series:
    return {'up{instance="a",job="tailtrace"}': f"{value}x{SAMPLES}"}


def merged(*several: Series) -> Series:
    return {name: values for each in several for name, values in each.items()}


# 100 steps a second take 10 to 20 ms; every 200th takes 0.1 to 0.5 s, so p999 is 0.42 s.
SLOW = merged(up(1), steps({"0.01": 0, "0.02": 99.5, "0.1": 99.5, "0.5": 100}))
FAST = merged(up(1), steps({"0.01": 0, "0.02": 100, "0.1": 100, "0.5": 100}))
# 20 ms less often than a p999 tells, so slow steps cannot come from it.
SHORT_WAITS = descheduled("runqueue", 0.05, {"0.0001": 1000, "0.5": 1000})
LONG = {"0.1": 0, "0.5": 0.5}
"""Half an interval a second, each of 0.1 to 0.5 s."""

DECODE = {"instance": "a", "job": "tailtrace", "tenant": "chat", "step": "decode"}
SPIKE = {**DECODE, "severity": "critical"}


def spike(cause: str, aggressor: str = "unknown", p999: str = "499.6ms") -> Firing:
    return Firing(
        SPIKE,
        "Steps decode of tenant chat on a take 28.0 times their median at p999, most of all by "
        f"{cause}; {aggressor} had the CPU longest meanwhile. "
        f"p999 of the tenant's deschedules: {p999}.",
    )


def budget(cause: str) -> Firing:
    return Firing(
        {**DECODE, "cause": cause, "severity": "warning"},
        f"Tenant chat on a is throttled by {cause}, and its steps decode are slow by it.",
    )


def lost(reason: str) -> Firing:
    return Firing(
        {"instance": "a", "job": "tailtrace", "reason": reason, "severity": "warning"},
        f"On a events are lost by {reason}, 2 in each second: figures of this node are too small.",
    )


def missed(reason: str) -> Firing:
    return Firing(
        {"instance": "a", "job": "tailtrace", "reason": reason, "severity": "warning"},
        f"On a a process was left out by {reason}: nothing is known of its steps.",
    )


def unavailable(capability: str) -> Firing:
    return Firing(
        {
            "instance": "a",
            "job": "tailtrace",
            "capability": capability,
            "source": "none",
            "severity": "warning",
        },
        f"On a the tracer cannot tell {capability}: it is missing, or counted under another cause.",
    )


CASES: dict[str, tuple[Series, dict[str, Firing]]] = {
    "another thread preempts slow steps": (
        merged(SLOW, descheduled("preempted", 0.15, LONG), blamed(batch=0.12, kworker=0.03)),
        {"TailtraceDescheduleSpike": spike("preempted", "batch")},
    ),
    "many short preemptions add up": (
        merged(SLOW, descheduled("preempted", 3, {"0.01": 0, "0.05": 60})),
        {"TailtraceDescheduleSpike": spike("preempted", p999="49.96ms")},
    ),
    "the same preemption while steps are fast enough": (
        merged(FAST, descheduled("preempted", 0.15, LONG)),
        {},
    ),
    "slow steps that waited for a lock": (merged(SLOW, spent("lock", 0.15), SHORT_WAITS), {}),
    "slow steps, and one long preemption in an hour": (
        merged(SLOW, SHORT_WAITS, descheduled("preempted", 0.0001, {"0.1": 0, "0.5": 0.0003})),
        {},
    ),
    "slow steps, too few for a p999": (
        merged(up(1), steps({"0.02": 1, "0.1": 1, "0.5": 2}), descheduled("preempted", 0.15, LONG)),
        {},
    ),
    "a CPU quota throttles slow steps": (
        merged(SLOW, descheduled("quota", 0.15, LONG)),
        {
            "TailtraceDescheduleSpike": spike("quota"),
            "TailtraceCpuBudgetBites": budget("quota"),
        },
    ),
    "a real-time budget throttles slow steps": (
        merged(SLOW, descheduled("rt_limit", 0.15, LONG)),
        {
            "TailtraceDescheduleSpike": spike("rt_limit"),
            "TailtraceCpuBudgetBites": budget("rt_limit"),
        },
    ),
    "a CPU quota throttles steps that are fast enough": (
        merged(FAST, descheduled("quota", 0.15, LONG)),
        {},
    ),
    "the hypervisor runs something else during slow steps": (
        merged(
            SLOW,
            descheduled("steal", 0.15, LONG),
            series(STEAL, 0.2, cpu="0"),
            series(STEAL, 0.01, cpu="1"),
        ),
        {
            "TailtraceDescheduleSpike": spike("steal"),
            "TailtraceHypervisorTakesCpu": Firing(
                {**DECODE, "cause": "steal", "severity": "warning"},
                "Steps decode of tenant chat on a are slow by steal. Taken from the CPU that lost "
                "most: 200ms in each second.",
            ),
        },
    ),
    "the hypervisor steals while steps are fast enough": (
        merged(FAST, descheduled("steal", 0.15, LONG), series(STEAL, 0.2, cpu="0")),
        {},
    ),
    "single CPUs stand still during slow steps": (
        merged(SLOW, descheduled("stall", 0.15, LONG), stalls("one", 0.2), stalls("all", 0.1)),
        {
            "TailtraceDescheduleSpike": spike("stall"),
            "TailtraceCpuStandsStill": Firing(
                {**DECODE, "cause": "stall", "severity": "warning"},
                "Steps decode of tenant chat on a are slow because a CPU stands still under them, "
                "one at a time: nine of ten stalls are shorter than 460ms.",
            ),
        },
    ),
    "all CPUs stand still at once during slow steps": (
        merged(SLOW, descheduled("stall", 0.15, LONG), stalls("one", 0.01), stalls("all", 0.3)),
        {
            "TailtraceDescheduleSpike": spike("stall"),
            "TailtraceCoStop": Firing(
                {**DECODE, "cause": "stall", "severity": "warning"},
                "Steps decode of tenant chat on a are slow because several CPUs stand still at "
                "once, mostly all: nine of ten stalls are shorter than 460ms.",
            ),
        },
    ),
    "all CPUs stand still at once while steps are fast enough": (
        merged(FAST, descheduled("stall", 0.15, LONG), stalls("all", 0.3)),
        {},
    ),
    "memory of another node is given to threads here": (
        merged(up(1), drift(0.3), apart(chat=0.6, batch=0.1)),
        {
            "TailtraceMemoryDrifts": Firing(
                {"instance": "a", "job": "tailtrace", "node": "0", "severity": "warning"},
                "On a 30% more of node 0's allocations than usual go to CPUs of other nodes. "
                "Farthest from its threads is the memory of tenant chat.",
            )
        },
    ),
    "other memory drifts, that of tenants is where their threads run": (
        merged(up(1), drift(0.3), apart(chat=0.1)),
        {},
    ),
    "memory is apart from its threads, as ever": (
        merged(up(1), drift(0.0), apart(chat=0.6)),
        {},
    ),
    "one window in half an hour drifts": (
        merged(up(1), drift("0x110 0.3x4 0x46"), apart(chat=0.6)),
        {},
    ),
    "events are lost, one in fifty steps": (
        merged(FAST, series(LOST, 2, reason="pieces_ring_full")),
        {"TailtraceLosesEvents": lost("pieces_ring_full")},
    ),
    "events are lost, and no step is left": (
        merged(up(1), series(LOST, 2, reason="mark_overrun")),
        {"TailtraceLosesEvents": lost("mark_overrun")},
    ),
    "one event is lost in ten thousand steps": (
        merged(FAST, series(LOST, 0.01, reason="pieces_ring_full")),
        {},
    ),
    "only names of aggressors are lost": (
        merged(FAST, series(LOST, 2, reason="blame_migrated")),
        {},
    ),
    "a process is left out every ten minutes": (
        merged(FAST, series(LOST, 1 / 600, reason="targets_full")),
        {"TailtraceMissesProcesses": missed("targets_full")},
    ),
    "requests to the kubelet are in vain": (
        merged(
            FAST,
            series(LOST, 1 / 30, reason="kubelet_refuses"),
            constant(PROBE_AVAILABLE, 0, capability="pods", source="none"),
        ),
        {"TailtraceProbeUnavailable": unavailable("pods")},
    ),
    "the tracer does not answer": (
        up(0),
        {
            "TailtraceAbsent": Firing(
                {"instance": "a", "job": "tailtrace", "severity": "warning"},
                "The tracer at a does not answer: no other alert can fire for its node.",
            )
        },
    ),
    "no tracer is known": (
        {'up{instance="a",job="other"}': f"1x{SAMPLES}"},
        {
            "TailtraceAbsent": Firing(
                {"severity": "warning"},
                "Every tracer does not answer: no other alert can fire for its node.",
            )
        },
    ),
    "a kernel that cannot tell throttling": (
        merged(up(1), series(PROBE_AVAILABLE, 0, capability="quota", source="none")),
        {"TailtraceProbeUnavailable": unavailable("quota")},
    ),
    "a machine without a hypervisor": (
        merged(up(1), series(PROBE_AVAILABLE, 0, capability="steal", source="none")),
        {},
    ),
    IDLE: (
        merged(
            up(1),
            steps({"0.02": 0, "0.5": 0}),
            *(spent(cause.name, 0) for cause in CAUSES),
            *(descheduled(cause, 0, {"0.1": 0, "0.5": 0}) for cause in DESCHEDULES),
            series(STEAL, 0, cpu="0"),
            stalls("all", 0),
            *(series(LOST, 0, reason=loss.name) for loss in LOSSES),
            *(constant(PROBE_AVAILABLE, 1, capability=name, source="x") for name in CAPABILITIES),
        ),
        {},
    ),
    "an idle node: nothing is there": (up(1), {}),
}


@pytest.fixture
def promtool(tmp_path: Path) -> Callable[..., str]:
    """Runs a case and returns what promtool complains about at the times that are given."""
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(groups(OBJECTIVES)))

    def run(given: Series, firing: Mapping[str, Firing], *times: str) -> str:
        case = tmp_path / "case.yaml"
        case.write_text(yaml.safe_dump(_document(given, firing, times)))
        result = subprocess.run(
            ["promtool", "test", "rules", case], check=False, capture_output=True, text=True
        )
        return "" if result.returncode == 0 else result.stdout + result.stderr

    return run


def _document(given: Series, firing: Mapping[str, Firing], times: Sequence[str]) -> dict[str, Any]:
    interval = f"{INTERVAL_SECONDS}s"
    return {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": interval,
        "tests": [
            {
                "interval": interval,
                "input_series": [
                    {"series": name, "values": values} for name, values in given.items()
                ],
                "alert_rule_test": [
                    {
                        "alertname": name,
                        "eval_time": at,
                        "exp_alerts": _expected(name, firing),
                    }
                    for at in times
                    for name in ALERTS
                ],
            }
        ],
    }


def _expected(name: str, firing: Mapping[str, Firing]) -> list[dict[str, Any]]:
    if name not in firing:
        return []
    annotations = {
        "summary": ALERTS[name].summary,
        "description": firing[name].description,
        "runbook_url": f"https://runbooks.example/{name}.md",
    }
    return [{"exp_labels": dict(firing[name].labels), "exp_annotations": annotations}]


@pytest.mark.parametrize(("given", "firing"), CASES.values(), ids=CASES.keys())
def test_what_fires_after_half_an_hour(promtool, given, firing):
    assert promtool(given, firing, "30m") == ""


@pytest.mark.parametrize(("given", "firing"), CASES.values(), ids=CASES.keys())
def test_nothing_fires_at_once(promtool, given, firing):
    assert promtool(given, {}, "1m") == ""


def test_an_idle_hour_raises_nothing(promtool):
    idle, _ = CASES[IDLE]

    assert promtool(idle, {}, *(f"{minute}m" for minute in range(61))) == ""


def test_a_process_that_was_left_out_before_the_first_scrape_is_told_of_for_a_while(promtool):
    reason = "page_unreadable"
    given = merged(FAST, constant(LOST, 1, reason=reason))

    assert promtool(given, {"TailtraceMissesProcesses": missed(reason)}, "6m", "14m") == ""
    assert promtool(given, {}, "30m", "60m") == ""


@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_fires_in_one_case_and_not_in_another(name):
    fires = {name in firing for _, firing in CASES.values()}

    assert fires == {True, False}
