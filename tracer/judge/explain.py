"""Why one step took longer than its like: in a sentence or two, and in full."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from tracer import catalog
from tracer.judge import counts
from tracer.judge.words import CAUSES, clipped, count, duration, percent, wrapped
from tracer.ledger.labels import pool_of
from tracer.ledger.summary import ByCause, SlowStep
from tracer.model import Aggressor

_CAUSES = 4  # as many are named in a sentence
_MINOR = 0.05  # of what a step took longer: causes with less are not named
_ALL_BUT = 0.9  # an aggressor with this part of a wait is the one to name


def as_dict(step: SlowStep, ended_unix: float) -> dict[str, Any]:
    """For JSON, times in seconds; ``ended_unix`` is when it ended by the wall clock."""
    return asdict(step) | {"ended_unix": ended_unix}


def sentence(step: SlowStep) -> str:
    """What it took longer than the median for, and who had the CPU."""
    longer = step.elapsed - step.median
    title = f"step {step.number} {step.step} of {step.tenant} took {duration(step.elapsed)}"
    if longer <= 0:
        return f"{title}, no longer than the median."
    causes = [(c, s) for c, s in excess(step.seconds, step.typical) if s >= _MINOR * longer]
    named = _one_aggressor(step)
    parts = [
        f"{duration(s)} {CAUSES[cause]}{f' by {named}' if cause == 'preempted' and named else ''}"
        for cause, s in causes[:_CAUSES]
    ]
    text = f"{title}, {duration(longer)} longer than the median: {', '.join(parts)}."
    if not named and step.aggressors:
        instead = [f"{_who(a)} {duration(a.seconds)}" for a in step.aggressors[:3]]
        text += f" Meanwhile on its CPU: {', '.join(instead)}."
    if step.helper_wait >= _MINOR * longer:
        text += f" Its helper threads wanted a CPU for {duration(step.helper_wait)}"
        text += f", at worst {duration(step.helper_worst)} at once."
    return f"{text} {counts.sentence(step)}".rstrip()


def in_full(step: SlowStep, ended_unix: float) -> list[str]:
    """Everything that is known of the step, in lines that fit a screen."""
    return [
        *wrapped(sentence(step)),
        "",
        *_about(step, ended_unix),
        "",
        *_ledger(step),
        *_aggressors(step),
        *counts.in_full(step),
    ]


def excess(seconds: ByCause, typical: ByCause) -> list[tuple[str, float]]:
    """By how much each cause is more than in the typical step, largest first."""
    more = [(cause, s - typical[cause]) for cause, s in seconds.items()]
    return sorted(((c, s) for c, s in more if s > 0), key=lambda pair: -pair[1])


def _about(step: SlowStep, ended_unix: float) -> Iterator[str]:
    ended = datetime.fromtimestamp(ended_unix, UTC).strftime("%F %T.%f")[:-3]
    text = f"ended at {ended} UTC, thread {step.tid}"
    if step.parent:
        text += f", a stage of step {step.parent}"
    shares = [f"{tenant} {percent(share, 1)}" for tenant, share in step.shares.items()]
    yield from wrapped(f"{text}; served {', '.join(shares)}")
    yield from wrapped(
        f"left the CPU {count(step.switches, 'time')}, of these {step.involuntary:,} wanting to "
        f"stay; {count(step.migrations, 'move')} to another CPU"
    )
    if step.worst:
        ran = f" while {step.worst.comm} (thread {step.worst.tid}) ran" if step.worst.comm else ""
        yield from wrapped(
            f"the longest deschedule: {duration(step.worst.seconds)} "
            f"{CAUSES[step.worst.cause]}{ran}, until {duration(step.worst.after)} after the begin"
        )


def _ledger(step: SlowStep) -> Iterator[str]:
    form = "{:36} {:>9} {:>6} {:>12} {:>9}"
    yield form.format("WHERE THE TIME WENT", "THIS STEP", "", "MEDIAN STEP", "LONGER")
    for cause in catalog.CAUSES:
        here, typical = step.seconds[cause.name], step.typical[cause.name]
        if here or typical:
            part = percent(here, step.elapsed)
            times = duration(here), part, duration(typical), duration(here - typical)
            yield form.format(CAUSES[cause.name], *times)
    typical = sum(step.typical.values())
    longer = duration(step.elapsed - typical)
    yield form.format("all", duration(step.elapsed), "", duration(typical), longer)


def _aggressors(step: SlowStep) -> Iterator[str]:
    if not step.aggressors:
        return
    form = "{:36} {:>9} {:>6}  {}"
    yield ""
    yield form.format("WHO HAD THE CPU", "TIME", "", "THREAD")
    wanted = step.blame_rest + sum(aggressor.seconds for aggressor in step.aggressors)
    for a in step.aggressors:
        part = percent(a.seconds, wanted)
        yield form.format(clipped(_who(a), 36), duration(a.seconds), part, f"{a.tid} of {a.pid}")
    if step.blame_rest:
        part = percent(step.blame_rest, wanted)
        yield form.format("not known", duration(step.blame_rest), part, "").rstrip()


def _one_aggressor(step: SlowStep) -> str:
    """The one that took all but a little; empty when there is none."""
    blamed = step.blame_rest + sum(aggressor.seconds for aggressor in step.aggressors)
    if step.aggressors and step.aggressors[0].seconds >= _ALL_BUT * blamed:
        return _who(step.aggressors[0])
    return ""


def _who(aggressor: Aggressor) -> str:
    if aggressor.name in (aggressor.comm, pool_of(aggressor.comm)):
        return aggressor.comm
    return f"{aggressor.comm} ({aggressor.name})"
