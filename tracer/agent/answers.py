"""What ``doctor`` and ``memory`` answer while the agent runs, to be recorded word for word."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from tracer.agent.memory import Memory
from tracer.errors import UsageError
from tracer.judge import doctor, memory
from tracer.judge.misplaced import misplaced
from tracer.record.window import DOCTOR, DOCTOR_FULL, MEMORY, REPORT_MEMORY, Answer


def of_doctor(pids: Sequence[int]) -> dict[str, Answer]:
    """Empty when one of these processes has just ended."""
    with contextlib.suppress(UsageError):
        found = doctor.examine(pids=pids)
        value, code = doctor.as_dict(found), int(found.misleading)
        return {
            DOCTOR: Answer(value, tuple(doctor.as_lines(found)), code),
            DOCTOR_FULL: Answer(value, tuple(doctor.as_lines(found, full=True)), code),
        }
    return {}


def in_report(figures: Memory) -> Answer:
    placement = figures.placement
    value = memory.as_dict(placement) if placement else None
    return Answer(value, tuple(memory.section(placement, figures.capability)))


def of_memory(figures: Memory) -> dict[str, Answer]:
    answers = {REPORT_MEMORY: in_report(figures)}
    if placement := figures.placement:
        code = int(any(misplaced(placement)))
        lines = tuple(memory.as_lines(placement))
        answers[MEMORY] = Answer(memory.as_dict(placement), lines, code)
    return answers
