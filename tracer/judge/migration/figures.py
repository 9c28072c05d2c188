"""The figures that a criterion can be about, each with its confidence interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from tracer.judge.migration.distribution import Distribution
from tracer.judge.migration.intervals import (
    Interval,
    correlation,
    mean_interval,
    quantile_interval,
    ratio,
)
from tracer.judge.migration.sample import Sample


class Of(Enum):
    """What has one value of a figure."""

    MACHINE = "machine"
    TENANT = "tenant"
    PAIR = "tenant and step"


class Unit(Enum):
    SECONDS = "s"
    PER_SECOND = "/s"
    NUMBER = ""


Subject = tuple[str, str]
"""Tenant and step kind; empty where a figure has none."""


@dataclass(frozen=True, slots=True)
class Figure:
    of: Of
    unit: Unit
    help: str
    estimate: Callable[[Sample, Subject, float], Interval]
    """Of what the sample has of a subject, at this confidence."""

    observations: Callable[[Sample, Subject], int]
    """0 where there is nothing to estimate from."""

    steal_matters: bool = False
    quantile: float | None = None
    """Of a distribution, where the figure is one."""

    @property
    def measured(self) -> bool:
        """Else it is read once, and is what it is."""
        return self.of is not Of.MACHINE


def subjects(figure: Figure, sample: Sample) -> Sequence[Subject]:
    if figure.of is Of.MACHINE:
        return [("", "")]
    if figure.of is Of.PAIR:
        return list(sample.elapsed)
    return [(tenant, "") for tenant in {**sample.deschedules, **sample.queue_waits}]


_Find = Callable[[Sample, Subject], Distribution | None]


def _step_times(sample: Sample, subject: Subject) -> Distribution | None:
    return sample.elapsed.get(subject)


def _deschedules(sample: Sample, subject: Subject) -> Distribution | None:
    return sample.deschedules.get(subject[0])


def _queue_waits(sample: Sample, subject: Subject) -> Distribution | None:
    return sample.queue_waits.get(subject[0])


def _found(find: _Find, sample: Sample, subject: Subject) -> Distribution:
    distribution = find(sample, subject)
    assert distribution is not None  # it has observations
    return distribution


def _count(find: _Find) -> Callable[[Sample, Subject], int]:
    def observations(sample: Sample, subject: Subject) -> int:
        distribution = find(sample, subject)
        return distribution.observations if distribution else 0

    return observations


def _quantile(find: _Find, q: float) -> Callable[[Sample, Subject, float], Interval]:
    def estimate(sample: Sample, subject: Subject, confidence: float) -> Interval:
        return quantile_interval(_found(find, sample, subject), q, confidence)

    return estimate


def _tail_ratio(sample: Sample, subject: Subject, confidence: float) -> Interval:
    times = _found(_step_times, sample, subject)
    tail, median = (quantile_interval(times, q, confidence) for q in (0.999, 0.5))
    return ratio(tail, median, correlation(times, 0.999, 0.5))


def _rate(sample: Sample, subject: Subject, confidence: float) -> Interval:
    return mean_interval(_found(_step_times, sample, subject).by_window, sample.seconds, confidence)


def _mean(sample: Sample, subject: Subject, confidence: float) -> Interval:
    times = _found(_step_times, sample, subject)
    return mean_interval(times.seconds_by_window, times.by_window, confidence)


def _numa_nodes(sample: Sample, _: Subject, __: float) -> Interval:
    nodes = float(sample.meta.machine.numa_nodes or 0)
    return Interval(nodes, nodes, nodes)


def _misplaced_segments(sample: Sample, _: Subject, __: float) -> Interval:
    misplaced = float(sample.misplaced_segments or 0)
    return Interval(misplaced, misplaced, misplaced)


def _quantiles(
    name: str, of: Of, find: _Find, what: str, steal_matters: bool = False
) -> dict[str, Figure]:
    return {
        f"{name}_p{100 * q:g}".replace(".", ""): Figure(
            of,
            Unit.SECONDS,
            f"{100 * q:g}th percentile of {what}",
            _quantile(find, q),
            _count(find),
            steal_matters,
            q,
        )
        for q in (0.5, 0.99, 0.999)
    }


FIGURES: dict[str, Figure] = {
    **_quantiles("deschedule", Of.TENANT, _deschedules, "deschedule intervals of all causes", True),
    **_quantiles("step", Of.PAIR, _step_times, "step wall time"),
    "step_p999_p50": Figure(
        Of.PAIR,
        Unit.NUMBER,
        "99.9th percentile of step wall time over its median",
        _tail_ratio,
        _count(_step_times),
    ),
    "step_mean": Figure(Of.PAIR, Unit.SECONDS, "mean step wall time", _mean, _count(_step_times)),
    "steps_per_second": Figure(
        Of.PAIR, Unit.PER_SECOND, "steps that ended, per second", _rate, _count(_step_times)
    ),
    **_quantiles("queue_wait", Of.TENANT, _queue_waits, "waits in the engine's queue"),
    "numa_nodes": Figure(
        Of.MACHINE,
        Unit.NUMBER,
        "NUMA nodes that the machine shows",
        _numa_nodes,
        lambda sample, _: int(sample.meta.machine.numa_nodes is not None),
    ),
    "misplaced_segments": Figure(
        Of.MACHINE,
        Unit.NUMBER,
        "shared segments with memory on another node than where it should be",
        _misplaced_segments,
        lambda sample, _: int(sample.misplaced_segments is not None),
    ),
}
