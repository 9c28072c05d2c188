"""
The verdict on a migration: each criterion with what was before and after, and whether it holds.

A criterion holds when its whole interval is within the limit, and does not when all of it is
beyond. Everything else is inconclusive, and says what would settle it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum

from tracer.judge.migration.changes import CauseChange, changes
from tracer.judge.migration.comparable import Objection, objections
from tracer.judge.migration.criteria import Criteria, Criterion
from tracer.judge.migration.figures import FIGURES, Figure, Of, Subject, subjects
from tracer.judge.migration.intervals import Interval, ratio
from tracer.judge.migration.sample import Pair, Sample

SHOWN = 0.95
"""Confidence of the intervals that are shown."""

_LONGER = (2, 4, 8, 16, 32)  # times as long: beyond, the figure is as good as on its limit


class Outcome(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


EXIT_CODES = {Outcome.PASS: 0, Outcome.FAIL: 1, Outcome.INCONCLUSIVE: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    interval: Interval
    """Of SHOWN confidence."""

    observations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One criterion of one subject."""

    criterion: Criterion
    tenant: str
    step: str
    before: Estimate | None
    """None where there is nothing to estimate from."""

    after: Estimate | None
    ratio: Interval | None
    """After over before."""

    outcome: Outcome
    reason: str = ""
    """Why it is inconclusive, and what would settle it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    before: Sample
    after: Sample
    criteria: Criteria
    objections: Sequence[Objection]
    findings: Sequence[Finding]
    causes: Sequence[CauseChange]
    remarks: Sequence[str] = ()
    """What a reader should know of the recordings."""

    @property
    def outcome(self) -> Outcome:
        return _of_all({finding.outcome for finding in self.findings})

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.outcome]


def judge(
    before: Sample, after: Sample, criteria: Criteria, remarks: Sequence[str] = ()
) -> Verdict:
    against = tuple(objections(before, after, criteria))
    judged = _judged_pairs(before, after, criteria.min_share)
    findings = [
        _Case(before, after, criterion, subject, criteria.confidence).finding(against)
        for criterion in criteria.all
        for subject in _subjects(before, after, criterion, judged)
    ]
    return Verdict(
        before=before,
        after=after,
        criteria=criteria,
        objections=against,
        findings=findings,
        causes=changes(before, after, criteria.confidence),
        remarks=[*remarks, *_left_out(criteria, findings)],
    )


def _left_out(criteria: Criteria, findings: Sequence[Finding]) -> Iterator[str]:
    judged = {finding.criterion for finding in findings}
    for criterion in criteria.all:
        if criterion not in judged:
            yield f"{criterion.figure} is not judged: nothing is told of it after the migration."


def _judged_pairs(before: Sample, after: Sample, min_share: float) -> set[Pair]:
    """Those with enough of the time of all steps to matter, before or after."""
    return {
        pair
        for sample in (before, after)
        for pair, times in sample.elapsed.items()
        if pair not in sample.stages and times.duration >= min_share * sample.causes.sum()
    }


def _subjects(
    before: Sample, after: Sample, criterion: Criterion, judged: Set[Pair]
) -> Sequence[Subject]:
    """Those that the criterion names, or of those that matter all that it is about."""
    figure, named = FIGURES[criterion.figure], (criterion.tenant, criterion.step)
    if figure.of is Of.MACHINE or all(named) or (criterion.tenant and figure.of is Of.TENANT):
        found = {named: None}
    else:
        found = _observed(before, after, criterion, judged)
    if criterion.where_told:
        return [subject for subject in found if figure.observations(after, subject)]
    return list(found) or [named]


def _observed(
    before: Sample, after: Sample, criterion: Criterion, judged: Set[Pair]
) -> dict[Subject, None]:
    """In the order in which they were seen."""
    figure, tenants = FIGURES[criterion.figure], {tenant for tenant, _ in judged}
    return {
        subject: None
        for sample in (before, after)
        for subject in subjects(figure, sample)
        if figure.observations(sample, subject)
        and (subject in judged if subject[1] else subject[0] in tenants or not tenants)
        and criterion.tenant in ("", subject[0])
        and criterion.step in ("", subject[1])
    }


@dataclass(frozen=True, slots=True)
class _Case:
    """One criterion of one subject, on both sides."""

    before: Sample
    after: Sample
    criterion: Criterion
    subject: Subject
    confidence: float

    @property
    def figure(self) -> Figure:
        return FIGURES[self.criterion.figure]

    def finding(self, against: Sequence[Objection]) -> Finding:
        was, now = self._estimate(self.before), self._estimate(self.after)
        outcome, reason = Outcome.INCONCLUSIVE, self._missing(was, now)
        if not reason:
            objected = [o.name for o in against if o.concerns(self.figure)]
            reason = f"cannot be compared: {', '.join(objected)}" if objected else ""
        if not reason:
            outcome = self.outcome()
            reason = self._what_would_settle() if outcome is Outcome.INCONCLUSIVE else ""
        return Finding(
            criterion=self.criterion,
            tenant=self.subject[0],
            step=self.subject[1],
            before=was,
            after=now,
            ratio=ratio(now.interval, was.interval) if was and now else None,
            outcome=outcome,
            reason=reason,
        )

    def outcome(self) -> Outcome:
        """Of all limits together, when what they need was observed."""
        limits, of = self.criterion, self.figure.estimate
        now = of(self.after, self.subject, self.confidence)
        outcomes = {within(now, limits.at_least, limits.at_most)}
        if limits.compares:
            change = ratio(now, of(self.before, self.subject, self.confidence))
            outcomes.add(within(change, limits.min_ratio, limits.max_ratio))
        return _of_all(outcomes)

    def _estimate(self, sample: Sample) -> Estimate | None:
        observations = self.figure.observations(sample, self.subject)
        if not observations:
            return None
        return Estimate(
            interval=self.figure.estimate(sample, self.subject, SHOWN), observations=observations
        )

    def _missing(self, was: Estimate | None, now: Estimate | None) -> str:
        needed = {"after": now} | ({"before": was} if self.criterion.compares else {})
        missing = [side for side, estimate in needed.items() if estimate is None]
        return f"nothing was observed {' and '.join(missing)}" if missing else ""

    def _what_would_settle(self) -> str:
        minutes = max(float(sample.seconds.sum()) for sample in (self.before, self.after)) / 60
        for times in _LONGER:
            before, after = (
                sample.repeated(times, self.subject) for sample in (self.before, self.after)
            )
            longer = replace(self, before=before, after=after)
            if longer.outcome() is not Outcome.INCONCLUSIVE:
                return f"too few samples; about {times * minutes:,.0f} minutes of each would settle"
        return "so close to its limit that recording longer would not settle it soon"


def _of_all(outcomes: Set[Outcome]) -> Outcome:
    """Nothing to judge is no pass."""
    if Outcome.FAIL in outcomes:
        return Outcome.FAIL
    return Outcome.PASS if outcomes == {Outcome.PASS} else Outcome.INCONCLUSIVE


def within(interval: Interval, least: float | None, most: float | None) -> Outcome:
    """Whether a value that is in the interval is within limits, as far as that can be told."""
    least, most = least or 0.0, math.inf if most is None else most
    if interval.high < least or interval.low > most:
        return Outcome.FAIL
    bounded = math.isinf(most) or interval.high <= most
    return Outcome.PASS if least <= interval.low and bounded else Outcome.INCONCLUSIVE
