"""The verdict for a terminal, for programs and for a merge request."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from tracer.judge.migration import phrases
from tracer.judge.migration.changes import CauseChange
from tracer.judge.migration.criteria import LIMITS
from tracer.judge.migration.figures import FIGURES
from tracer.judge.migration.sample import Sample
from tracer.judge.migration.verdict import Finding, Verdict
from tracer.judge.words import clipped

WIDTH = 100


def as_lines(verdict: Verdict) -> list[str]:
    """Lines of at most WIDTH columns."""
    lines = [phrases.headline(verdict), ""]
    lines += _wrapped(f"before: {phrases.recording(verdict.before)}", "  ")
    lines += _wrapped(f"after:  {phrases.recording(verdict.after)}", "  ")
    if verdict.objections:
        lines += ["", "What speaks against a comparison"]
        lines += [line for o in verdict.objections for line in _wrapped(f"- {o.text}", "  ")]
    lines.append("")
    for finding in verdict.findings:
        lines += _finding(finding)
    if verdict.causes:
        lines += ["", *_causes(verdict)]
    return [*lines, "", *(line for note in phrases.notes(verdict) for line in _wrapped(note, ""))]


def _finding(finding: Finding) -> Iterator[str]:
    title = f"{finding.criterion.figure} of {phrases.subject(finding)}"
    limits = phrases.limits(finding.criterion)
    yield from _wrapped(f"{finding.outcome.upper():13} {title}: {limits}", " " * 14)
    sides = [
        f"before {phrases.estimate(finding.before, finding)}",
        f"after {phrases.estimate(finding.after, finding)}",
    ]
    if FIGURES[finding.criterion.figure].measured:
        sides.append(f"ratio {phrases.change(finding)}")
        sides.append(f"of {phrases.observations(finding)}")
    yield from _wrapped(" " * 14 + "; ".join(sides), " " * 14)
    if finding.reason:
        yield from _wrapped(" " * 14 + finding.reason, " " * 14)


def _causes(verdict: Verdict) -> Iterator[str]:
    form = "{:28} {:>14} {:>14}  {}"
    yield form.format("TIME PER STEP", "BEFORE", "AFTER", "CHANGE")
    for change in shown_causes(verdict):
        name, *others = cause_cells(change)
        yield form.format(clipped(name if change.is_part else f"  {name}", 28), *others)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def as_dict(verdict: Verdict) -> dict[str, Any]:
    """For JSON: times in seconds; null for what has no bound or cannot be told."""
    plain = {
        "outcome": verdict.outcome,
        "exit_code": verdict.exit_code,
        "confidence": verdict.criteria.confidence,
        "before": _recording(verdict.before),
        "after": _recording(verdict.after),
        "remarks": list(verdict.remarks),
        "objections": [objection.text for objection in verdict.objections],
        "findings": [_as_dict(finding) for finding in verdict.findings],
        "causes": [asdict(change) for change in verdict.causes],
    }
    finite: dict[str, Any] = _finite(plain)
    return finite


def _recording(sample: Sample) -> dict[str, Any]:
    machine = sample.meta.machine
    return {
        "agent_version": sample.meta.agent_version,
        "machine": {field: getattr(machine, field) for field in machine.__struct_fields__},
        "seconds": float(sample.seconds.sum()),
        "windows": len(sample.seconds),
        "steps": int(sample.steps.sum()),
        "lost": dict(sample.lost),
        "cannot_tell": dict(sample.cannot_tell),
    }


def _as_dict(finding: Finding) -> dict[str, Any]:
    criterion = finding.criterion
    return {
        "figure": criterion.figure,
        "unit": FIGURES[criterion.figure].unit.value,
        "limits": {limit: getattr(criterion, limit) for limit in LIMITS},
        **{name: getattr(finding, name) for name in ("tenant", "step", "outcome", "reason")},
        **{
            side: of and asdict(of.interval) | {"observations": of.observations}
            for side, of in (("before", finding.before), ("after", finding.after))
        },
        "ratio": finding.ratio and asdict(finding.ratio),
    }


def _finite(value: Any) -> Any:
    """JSON knows neither infinity nor NaN."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return value


def as_markdown(verdict: Verdict) -> str:
    """With tables, as GitHub and GitLab show them."""
    parts = [f"## {phrases.headline(verdict)}"]
    sides = (("before", verdict.before), ("after", verdict.after))
    parts.append("\n".join(f"- {side}: {_safe(phrases.recording(s))}" for side, s in sides))
    if verdict.objections:
        parts.append("What speaks against a comparison:")
        parts.append("\n".join(f"- {_safe(o.text)}" for o in verdict.objections))
    parts.append(_table(FINDING_TITLES, [finding_cells(f) for f in verdict.findings]))
    if verdict.causes:
        rows = [cause_cells(cause) for cause in shown_causes(verdict)]
        parts.append(_table(CAUSE_TITLES, rows))
    return "\n\n".join([*parts, *phrases.notes(verdict)]) + "\n"


FINDING_TITLES = ("Verdict", "Figure", "Of", "Limit", "Before", "After", "Ratio", "Samples", "Why")
CAUSE_TITLES = ("Time per step", "Before", "After", "Change")


def finding_cells(finding: Finding) -> Sequence[str]:
    """In the order of FINDING_TITLES."""
    return (
        finding.outcome,
        finding.criterion.figure,
        phrases.subject(finding),
        phrases.limits(finding.criterion),
        phrases.estimate(finding.before, finding),
        phrases.estimate(finding.after, finding),
        phrases.change(finding),
        phrases.observations(finding),
        finding.reason,
    )


def shown_causes(verdict: Verdict) -> Sequence[CauseChange]:
    return [cause for cause in verdict.causes if phrases.worth_showing(cause, verdict)]


def cause_cells(cause: CauseChange) -> Sequence[str]:
    """In the order of CAUSE_TITLES."""
    sides = phrases.seconds(cause.before), phrases.seconds(cause.after)
    return cause.name, *sides, cause.change


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *([_safe(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _safe(text: str) -> str:
    """Whatever Markdown or HTML would take for more than text, escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#|!&~])", r"\\\1", text)
