"""Two recordings into one verdict."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.judge.migration.comparable import falsifying, named
from tracer.judge.migration.criteria import Criteria
from tracer.judge.migration.sample import Sample
from tracer.judge.migration.verdict import Verdict, judge
from tracer.record.recording import Recording


def compare(before: Recording, after: Recording, criteria: Criteria) -> Verdict:
    """Raises UsageError where a recording turns out to be damaged."""
    was, now = (Sample.of(recording.windows(), recording.meta) for recording in (before, after))
    remarks = [*_remarks("before", before, was), *_remarks("after", after, now)]
    return judge(was, now, criteria, remarks)


def _remarks(side: str, recording: Recording, sample: Sample) -> Iterator[str]:
    if not recording.closed_properly:
        yield f"{side}: was not closed properly, its last window may be missing."
    if recording.dropped:
        yield f"{side}: its first {recording.dropped} windows were dropped to make room."
    if lost := falsifying(sample):
        yield f"{side}: lost {named(lost)}."
