"""
Alerts, few enough that each is worth being woken for or acting on.

None fires on a cause alone: a busy node preempts and throttles all day. Steps must be slow, and
the deschedule must explain it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboards.promql import quantile, quoted, rate, selector, sum_by, top
from dashboards.rules import DRIFT, EXPLAINS_TAIL, P999_DESCHEDULE, RECORDS, STEP_RATIO, WINDOW
from tracer.catalog import (
    BLAME,
    HARMLESS_LOSSES,
    LOST,
    OPTIONAL_CAPABILITIES,
    PLACEMENT_MISMATCH,
    PROBE_AVAILABLE,
    STALL,
    STEAL,
    STEP_ELAPSED,
    TARGET_LOSSES,
)

# Drift alone may be a batch job that nobody waits for, and a mismatch alone may be meant.
_DRIFT = 0.1
_APART = 0.2
_TARGET_LOSSES = tuple(loss.name for loss in TARGET_LOSSES)


@dataclass(frozen=True, kw_only=True, slots=True)
class Objectives:
    """What a site decides."""

    step_ratio: float = 2.0
    """A step's p999 may be this many times its median."""

    job: str = ".*tailtrace.*"
    """Regular expression over the scrape's ``job``."""

    runbooks: str = "docs/runbooks"
    """Where the runbooks are served; each is ALERT.md below it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Alert:
    name: str
    expression: str
    hold: str
    """How long it must be true before it fires."""

    severity: str
    """``critical`` wakes somebody, ``warning`` is for working hours."""

    summary: str
    description: str
    """A template over the alert's labels and value."""


def alerts(objectives: Objectives) -> tuple[Alert, ...]:
    return (
        _deschedule_spike(objectives),
        _cpu_budget_bites(objectives),
        _hypervisor_takes_cpu(objectives),
        _cpu_stands_still(objectives),
        _co_stop(objectives),
        _memory_drifts(),
        _loses_events(),
        _misses_processes(),
        _absent(objectives),
        _probe_unavailable(),
    )


def _deschedule_spike(objectives: Objectives) -> Alert:
    cause = _ask(top(1, f"{EXPLAINS_TAIL.name}{{%s}}"), "instance", "tenant", "step", show="cause")
    aggressor = _ask(
        top(1, sum_by(["aggressor"], rate(BLAME, WINDOW, matchers="%s"))),
        "instance",
        "tenant as victim",
        show="aggressor",
    )
    p999 = _ask(f"{P999_DESCHEDULE.name}{{%s}}", "instance", "tenant")
    return Alert(
        name="TailtraceDescheduleSpike",
        expression=f"{_slow(objectives)} and max without (cause) ({EXPLAINS_TAIL.name})",
        # The window has smoothed already: two minutes more keep out one burst that straddles it,
        # and leave eight of a ten-minute incident to act in.
        hold="2m",
        # The tenant's requests are late now.
        severity="critical",
        summary="Inference steps are slow because their threads do not get the CPU.",
        description=(
            "Steps {{ $labels.step }} of tenant {{ $labels.tenant }} on {{ $labels.instance }}"
            ' take {{ $value | printf "%.1f" }} times their median at p999, most of all by '
            f"{cause}; {aggressor} had the CPU longest meanwhile. "
            f"p999 of the tenant's deschedules: {p999}."
        ),
    )


def _cpu_budget_bites(objectives: Objectives) -> Alert:
    return Alert(
        name="TailtraceCpuBudgetBites",
        expression=_slow_by(objectives, "quota", "rt_limit"),
        # Quota is refilled every 0.1 s and RT budget every second, so five minutes more are
        # hundreds of periods: a limit that is too small, not a burst.
        hold="5m",
        # The spike alert wakes; this one says which setting to change.
        severity="warning",
        summary="A CPU quota or real-time budget makes inference steps slow.",
        description=(
            "Tenant {{ $labels.tenant }} on {{ $labels.instance }} is throttled by "
            "{{ $labels.cause }}, and its steps {{ $labels.step }} are slow by it."
        ),
    )


def _hypervisor_takes_cpu(objectives: Objectives) -> Alert:
    steal = _ask(top(1, rate(STEAL, WINDOW, matchers="%s")), "instance")
    return Alert(
        name="TailtraceHypervisorTakesCpu",
        expression=_slow_by(objectives, "steal"),
        # A live migration of the machine passes within minutes; an overcommitted host stays.
        hold="10m",
        # Nothing inside of the machine helps, so nobody needs to hurry.
        severity="warning",
        summary="The hypervisor takes the CPU away from inference steps.",
        description=(
            "Steps {{ $labels.step }} of tenant {{ $labels.tenant }} on {{ $labels.instance }} are "
            f"slow by {{{{ $labels.cause }}}}. Taken from the CPU that lost most: {steal} in each "
            "second."
        ),
    )


_TOGETHER = quoted("some", "all_but_one", "all")
_STALLED = rate(STALL, WINDOW, "sum")
_STALLED_TOGETHER = rate(STALL, WINDOW, "sum", f"scope=~{_TOGETHER}")
_CO_STOPS = f"sum by (instance) ({_STALLED_TOGETHER}) > 0.5 * sum by (instance) ({_STALLED})"
"""Most of the time that CPUs stand still, several do so at once."""


def _length_of_stalls() -> str:
    return _ask(quantile(0.9, f"sum by (le) ({rate(STALL, WINDOW, 'bucket', '%s')})"), "instance")


def _cpu_stands_still(objectives: Objectives) -> Alert:
    return Alert(
        name="TailtraceCpuStandsStill",
        expression=f"{_slow_by(objectives, 'stall')} unless on (instance) ({_CO_STOPS})",
        # As with steal: what lasts is a host with too little for all.
        hold="10m",
        severity="warning",
        summary="Single CPUs stand still during inference steps.",
        description=(
            "Steps {{ $labels.step }} of tenant {{ $labels.tenant }} on {{ $labels.instance }} are "
            "slow because a CPU stands still under them, one at a time: nine of ten stalls are "
            f"shorter than {_length_of_stalls()}."
        ),
    )


def _co_stop(objectives: Objectives) -> Alert:
    scope = _ask(top(1, rate(STALL, WINDOW, "sum", "%s")), "instance", show="scope")
    return Alert(
        name="TailtraceCoStop",
        expression=f"{_slow_by(objectives, 'stall')} and on (instance) ({_CO_STOPS})",
        # A snapshot or a migration stops a machine a few times and is over.
        hold="10m",
        severity="warning",
        summary="CPUs stand still together during inference steps.",
        description=(
            "Steps {{ $labels.step }} of tenant {{ $labels.tenant }} on {{ $labels.instance }} are "
            f"slow because several CPUs stand still at once, mostly {scope}: nine of ten stalls "
            f"are shorter than {_length_of_stalls()}."
        ),
    )


def _memory_drifts() -> Alert:
    scrape = "instance, job"
    apart = f"max by ({scrape}) ({PLACEMENT_MISMATCH.name}) > {_APART}"
    tenant = _ask(top(1, f"{PLACEMENT_MISMATCH.name}{{%s}}"), "instance", show="tenant")
    return Alert(
        name="TailtraceMemoryDrifts",
        expression=f"{DRIFT.name} > {_DRIFT} and on ({scrape}) {apart}",
        # After half an hour what has changed is usual, so it must be told well before that.
        hold="5m",
        # Steps become slower by a factor, not by a tail; nobody needs to be woken.
        severity="warning",
        summary="Memory is allocated on another node than before, away from inference threads.",
        description=(
            "On {{ $labels.instance }} {{ $value | humanizePercentage }} more of node "
            "{{ $labels.node }}'s allocations than usual go to CPUs of other nodes. Farthest from "
            f"its threads is the memory of tenant {tenant}."
        ),
    )


def _loses_events() -> Alert:
    # Processes are counted once, however long they run: a rate says nothing of them.
    others = (*HARMLESS_LOSSES, *_TARGET_LOSSES)
    lost = rate(LOST, WINDOW, matchers=f"reason!~{quoted(*others)}")
    steps = f"sum without (tenant, step) ({rate(STEP_ELAPSED, WINDOW, 'count')})"
    # A p999 bears the loss of one step in a thousand. Without any step it bears nothing.
    few = f"{lost} <= ignoring (reason) group_left () 0.001 * {steps}"
    return Alert(
        name="TailtraceLosesEvents",
        expression=f"{lost} > 0 unless {few}",
        # A burst of new processes may overrun a ring once; what lasts does not end by itself.
        hold="15m",
        # Figures are too small; no tenant suffers by it.
        severity="warning",
        summary="The tracer does not count everything.",
        description=(
            "On {{ $labels.instance }} events are lost by {{ $labels.reason }}, "
            '{{ $value | printf "%.3g" }} in each second: figures of this node are too small.'
        ),
    )


def _misses_processes() -> Alert:
    lost = selector(LOST, matchers=f"reason=~{quoted(*_TARGET_LOSSES)}")
    window = "15m"
    return Alert(
        name="TailtraceMissesProcesses",
        # What was counted before the first scrape of an agent never increases.
        expression=f"increase({lost}[{window}]) > 0 or ({lost} > 0 unless {lost} offset {window})",
        # The page of a process that has just begun, or is ending, may be half made.
        hold="5m",
        # An engine is not watched, but none is known to suffer.
        severity="warning",
        summary="The tracer does not trace a process that it should.",
        description=(
            "On {{ $labels.instance }} a process was left out by {{ $labels.reason }}: nothing is "
            "known of its steps."
        ),
    )


def _absent(objectives: Objectives) -> Alert:
    up = f"up{{job=~{quoted(objectives.job)}}}"
    return Alert(
        name="TailtraceAbsent",
        expression=f"{up} == 0 or absent({up})",
        # A restart of the agent takes seconds, an update of the DaemonSet a few minutes.
        hold="10m",
        # A spike would now go unseen, but none is known of.
        severity="warning",
        summary="A tracer is not scraped.",
        description=(
            "{{ with $labels.instance }}The tracer at {{ . }}{{ else }}Every tracer{{ end }} does "
            "not answer: no other alert can fire for its node."
        ),
    )


def _probe_unavailable() -> Alert:
    matchers = f"capability!~{quoted(*sorted(OPTIONAL_CAPABILITIES))}"
    return Alert(
        name="TailtraceProbeUnavailable",
        expression=f"{selector(PROBE_AVAILABLE, matchers=matchers)} == 0",
        # Mostly decided when the agent starts, so there is no hurry; a kubelet may be restarting.
        hold="15m",
        # Causes are mixed up on this node; no tenant suffers by it.
        severity="warning",
        summary="The tracer cannot tell something on this node.",
        description=(
            "On {{ $labels.instance }} the tracer cannot tell {{ $labels.capability }}: it is "
            "missing, or counted under another cause."
        ),
    )


def groups(objectives: Objectives) -> dict[str, Any]:
    """A rule file's content: records first, because alerts use them."""
    records = [{"record": r.name, "expr": r.expression} for r in RECORDS]
    return {
        "groups": [
            {"name": "tailtrace.records", "rules": records},
            {
                "name": "tailtrace.alerts",
                "rules": [_rule(alert, objectives) for alert in alerts(objectives)],
            },
        ]
    }


def _rule(alert: Alert, objectives: Objectives) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.hold,
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            "runbook_url": f"{objectives.runbooks}/{alert.name}.md",
        },
    }


def _slow(objectives: Objectives) -> str:
    """Steps over their objective. Of less than 1,000 steps the p999 is the maximum: noise."""
    count = selector(STEP_ELAPSED, "count")
    return (
        f"({STEP_RATIO.name} > {objectives.step_ratio:g} and increase({count}[{WINDOW}]) >= 1000)"
    )


def _slow_by(objectives: Objectives, *causes: str) -> str:
    explained = f"{EXPLAINS_TAIL.name}{{cause=~{quoted(*causes)}}}"
    return f"{explained} and ignoring (cause) {_slow(objectives)}"


def _ask(query: str, *labels: str, show: str = "") -> str:
    """
    A template that asks Prometheus when the alert fires.

    ``%s`` in the query becomes matchers for these labels of the alert; ``LABEL as OTHER`` matches
    a label of another name. Shows a label of the first series, else its value as a duration.
    """
    names = [label.partition(" as ")[::2] for label in labels]
    matchers = ", ".join(f"{other or own}=%q" for own, other in names)
    values = " ".join(f"$labels.{own}" for own, _ in names)
    shown = f'label "{show}"' if show else "value | humanizeDuration"
    asked = f"with printf `{query % matchers}` {values} | query"
    return f"{{{{ {asked} }}}}{{{{ . | first | {shown} }}}}{{{{ else }}}}unknown{{{{ end }}}}"
