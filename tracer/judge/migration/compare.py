"""Two recordings into one verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tracer.judge.migration.comparable import falsifying, named
from tracer.judge.migration.criteria import Criteria
from tracer.judge.migration.sample import Sample
from tracer.judge.migration.verdict import Verdict, judge
from tracer.judge.placement import Verdict as Placed
from tracer.record.recording import Recording
from tracer.record.window import MEMORY


def compare(before: Recording, after: Recording, criteria: Criteria) -> Verdict:
    """Raises UsageError where a recording turns out to be damaged."""
    was, now = _sample(before), _sample(after)
    remarks = [*_remarks("before", before, was), *_remarks("after", after, now)]
    if before.meta == after.meta:
        remarks.append("before and after are the same recording.")
    return judge(was, now, criteria, remarks)


def _sample(recording: Recording) -> Sample:
    sample = Sample.of(recording.windows(), recording.meta)
    memory = recording.answers().get(MEMORY)
    segments = memory.value.get("segments") if memory and memory.value else None
    if not isinstance(segments, list):
        return sample
    verdicts = [segment.get("verdict") for segment in segments if isinstance(segment, dict)]
    return replace(sample, misplaced_segments=verdicts.count(Placed.MISPLACED))


def _remarks(side: str, recording: Recording, sample: Sample) -> Iterator[str]:
    if not recording.closed_properly:
        yield f"{side}: was not closed properly, its last window may be missing."
    if recording.dropped:
        yield f"{side}: its first {recording.dropped} windows were dropped to make room."
    if lost := falsifying(sample):
        yield f"{side}: lost {named(lost)}."
