"""
Alerts, few enough that each is worth being woken for or acting on.

None fires on a cause alone: a busy node preempts and throttles all day. Steps must be slow, and
the deschedule must explain it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dashboards.promql import any_of, rate, selector
from dashboards.rules import EXPLAINS_TAIL, P999_DESCHEDULE, RECORDS, STEP_RATIO, WINDOW
from tracer.catalog import (
    BLAME,
    KERNEL_LOSSES,
    LOST,
    OPTIONAL_CAPABILITIES,
    PROBE_AVAILABLE,
    STEAL,
    STEP_ELAPSED,
)


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


def _ask(query: str, *labels: str, show: str) -> str:
    """A template that asks Prometheus when the alert fires; ``%q`` are the alert's labels."""
    values = " ".join(f"$labels.{label}" for label in labels)
    found = f"{{{{ with printf `{query}` {values} | query }}}}{{{{ . | first | {show} }}}}"
    return f"{found}{{{{ else }}}}unknown{{{{ end }}}}"


_CAUSE = _ask(
    f"topk(1, {EXPLAINS_TAIL.name}{{instance=%q, tenant=%q, step=%q}})",
    "instance",
    "tenant",
    "step",
    show='label "cause"',
)
_AGGRESSOR = _ask(
    f"topk(1, sum by (aggressor) ({rate(BLAME, WINDOW, matchers='instance=%q, victim=%q')}))",
    "instance",
    "tenant",
    show='label "aggressor"',
)
_P999 = _ask(
    f"{P999_DESCHEDULE.name}{{instance=%q, tenant=%q}}",
    "instance",
    "tenant",
    show="value | humanizeDuration",
)
_STEAL = _ask(
    f"topk(1, {rate(STEAL, WINDOW, matchers='instance=%q')})",
    "instance",
    show="value | humanizeDuration",
)
_HARMLESS = tuple(loss.name for loss in KERNEL_LOSSES if not loss.falsifies)


def alerts(objectives: Objectives) -> tuple[Alert, ...]:
    slow = _slow(objectives)
    return (
        Alert(
            name="TailtraceDescheduleSpike",
            expression=f"{slow} and max without (cause) ({EXPLAINS_TAIL.name})",
            # The window has smoothed already: two minutes more keep out one burst that
            # straddles it, and leave eight of a ten-minute incident to act in.
            hold="2m",
            # The tenant's requests are late now.
            severity="critical",
            summary="Inference steps are slow because their threads do not get the CPU.",
            description=(
                "Steps {{ $labels.step }} of tenant {{ $labels.tenant }} on {{ $labels.instance }}"
                ' take {{ $value | printf "%.1f" }} times their median at p999. Most of it is '
                f"{_CAUSE}; {_AGGRESSOR} had the CPU most of the time. "
                f"p999 of the tenant's deschedules: {_P999}."
            ),
        ),
        Alert(
            name="TailtraceCpuBudgetBites",
            expression=_slow_by(slow, "quota", "rt_limit"),
            # Quota is refilled every 0.1 s and RT budget every second, so five minutes more are
            # thousands of periods: a limit that is too small, not a burst.
            hold="5m",
            # The spike alert wakes; this one says which setting to change.
            severity="warning",
            summary="A CPU quota or real-time budget makes inference steps slow.",
            description=(
                "Tenant {{ $labels.tenant }} on {{ $labels.instance }} is throttled by "
                "{{ $labels.cause }}, and its steps {{ $labels.step }} are slow by it."
            ),
        ),
        Alert(
            name="TailtraceHypervisorTakesCpu",
            expression=_slow_by(slow, "steal", "stall"),
            # A live migration of the machine passes within minutes; an overcommitted host stays.
            hold="10m",
            # Nothing inside of the machine helps, so nobody needs to hurry.
            severity="warning",
            summary="The hypervisor takes the CPU away from inference steps.",
            description=(
                "Steps {{ $labels.step }} of tenant {{ $labels.tenant }} on {{ $labels.instance }} "
                "are slow by {{ $labels.cause }}. Taken from the CPU that lost most: "
                f"{_STEAL} in each second."
            ),
        ),
        Alert(
            name="TailtraceLosesEvents",
            expression=(f"{rate(LOST, WINDOW, matchers=f'reason!~{_quoted(_HARMLESS)}')} > 0"),
            # A burst of new processes may overrun a ring once; what lasts does not end by itself.
            hold="15m",
            # Figures are too small; no tenant suffers by it.
            severity="warning",
            summary="The tracer does not count everything.",
            description=(
                "On {{ $labels.instance }} events are lost by {{ $labels.reason }}, "
                '{{ $value | printf "%.3g" }} in each second: figures of this node are too small.'
            ),
        ),
        Alert(
            name="TailtraceAbsent",
            expression=f"{_up(objectives)} == 0 or absent({_up(objectives)})",
            # A restart of the agent takes seconds, an update of the DaemonSet a few minutes.
            hold="10m",
            # A spike would now go unseen, but none is known of.
            severity="warning",
            summary="A tracer is not scraped.",
            description=(
                "{{ with $labels.instance }}The tracer at {{ . }}{{ else }}Every tracer"
                "{{ end }} does not answer: no other alert can fire for its node."
            ),
        ),
        Alert(
            name="TailtraceProbeUnavailable",
            expression=(
                selector(
                    PROBE_AVAILABLE,
                    matchers=f"capability!~{_quoted(sorted(OPTIONAL_CAPABILITIES))}",
                )
                + " == 0"
            ),
            # It is decided when the agent starts and does not change until the next start.
            hold="15m",
            severity="warning",
            summary="The tracer cannot tell something on this kernel.",
            description=(
                "The kernel of {{ $labels.instance }} does not allow to tell "
                "{{ $labels.capability }}: what it takes is counted under other causes."
            ),
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


def _slow_by(slow: str, *causes: str) -> str:
    return f"{EXPLAINS_TAIL.name}{{cause=~{_quoted(causes)}}} and ignoring (cause) {slow}"


def _up(objectives: Objectives) -> str:
    return f"up{{job=~{_quoted([objectives.job])}}}"


def _quoted(names: Iterable[str]) -> str:
    """The names as a regular expression, in quotes."""
    return f'"{any_of(names)}"'
