"""Two recordings into one verdict."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.judge.migration.criteria import Criteria
from tracer.judge.migration.sample import Sample
from tracer.judge.migration.verdict import Verdict, judge
from tracer.record.recording import Recording


def compare(before: Recording, after: Recording, criteria: Criteria) -> Verdict:
    """Raises UsageError where a recording turns out to be damaged."""
    was, now = (Sample.of(recording.windows(), recording.meta) for recording in (before, after))
    return judge(was, now, criteria, [*_remarks("before", before), *_remarks("after", after)])


def _remarks(side: str, recording: Recording) -> Iterator[str]:
    if not recording.closed_properly:
        yield f"{side}: was not closed properly, its last window may be missing."
    if recording.dropped:
        yield f"{side}: its first {recording.dropped} windows were dropped to make room."
