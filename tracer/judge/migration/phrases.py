"""What a verdict says, in the phrases that its text, Markdown and HTML share."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tracer.judge.migration.changes import CauseChange
from tracer.judge.migration.criteria import Criterion
from tracer.judge.migration.figures import FIGURES, Unit
from tracer.judge.migration.intervals import Interval
from tracer.judge.migration.sample import Sample
from tracer.judge.migration.verdict import SHOWN, Estimate, Finding, Outcome, Verdict
from tracer.judge.words import count, duration

ABSENT = "-"

_HEADLINES = {
    Outcome.PASS: "PASS: every criterion holds",
    Outcome.FAIL: "FAIL: a criterion does not hold",
    Outcome.INCONCLUSIVE: "INCONCLUSIVE: what was recorded does not settle it",
}
_LIMITS = {
    "at_most": "at most {}",
    "at_least": "at least {}",
    "max_ratio": "at most {} times before",
    "min_ratio": "at least {} times before",
}


def headline(verdict: Verdict) -> str:
    return _HEADLINES[verdict.outcome]


def recording(sample: Sample) -> str:
    """What was recorded where, in one line."""
    machine, meta = sample.meta.machine, sample.meta
    nodes = "NUMA nodes not known"
    if machine.numa_nodes is not None:
        nodes = count(machine.numa_nodes, "NUMA node")
    parts = (
        f"{sample.seconds.sum() / 60:,.1f} minutes",
        count(int(sample.steps.sum()), "step"),
        f"{machine.kind}, {count(machine.cpus, 'CPU')} ({machine.cpu_model})",
        nodes,
        f"Linux {machine.kernel}",
        f"tailtrace {meta.agent_version}",
    )
    return ", ".join(parts)


def subject(finding: Finding) -> str:
    return " ".join(part for part in (finding.tenant, finding.step) if part) or "the machine"


def limits(criterion: Criterion) -> str:
    unit = FIGURES[criterion.figure].unit
    if criterion.at_most is not None and criterion.at_most == criterion.at_least:
        return f"exactly {_number(criterion.at_most, unit)}"
    given = []
    for name, phrase in _LIMITS.items():
        limit = getattr(criterion, name)
        if limit is not None:
            given.append(phrase.format(_number(limit, Unit.NUMBER if "ratio" in name else unit)))
    return ", ".join(given)


def estimate(of: Estimate | None, finding: Finding) -> str:
    """``31.2 ms [30.1 ms, 32.0 ms]``"""
    if of is None:
        return ABSENT
    figure = FIGURES[finding.criterion.figure]
    return interval(of.interval, figure.unit) if figure.measured else f"{of.interval.value:g}"


def interval(of: Interval | None, unit: Unit = Unit.NUMBER) -> str:
    if of is None or math.isnan(of.value):
        return ABSENT
    return f"{_number(of.value, unit)} [{_number(of.low, unit)}, {_number(of.high, unit)}]"


def change(finding: Finding) -> str:
    """After over before."""
    return interval(finding.ratio) if FIGURES[finding.criterion.figure].measured else ABSENT


def observations(finding: Finding) -> str:
    if not FIGURES[finding.criterion.figure].measured:
        return ABSENT
    sides = (finding.before, finding.after)
    return " and ".join(f"{side.observations:,}" if side else "none" for side in sides)


def seconds(of: Interval | None) -> str:
    """A cause's, per step."""
    return "cannot be told" if of is None else duration(of.value)


def notes(verdict: Verdict) -> Iterator[str]:
    """How to read the figures."""
    yield (
        f"Brackets hold the {100 * SHOWN:g} % confidence interval. A criterion passes or fails "
        f"only when the {100 * verdict.criteria.confidence:g} % interval lies on one side of it."
    )
    yield from verdict.remarks


def worth_showing(change: CauseChange, verdict: Verdict) -> bool:
    """Parts, and causes with a thousandth of a step."""
    sides = [side.value for side in (change.before, change.after) if side]
    step = verdict.before.causes.sum() / verdict.before.steps.sum()
    return change.is_part or any(value >= 1e-3 * step for value in sides)


def _number(value: float, unit: Unit) -> str:
    if math.isinf(value):
        return "no bound"
    if unit is Unit.SECONDS:
        return duration(value)
    digits = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"{digits} /s" if unit is Unit.PER_SECOND else digits
