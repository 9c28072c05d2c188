"""Whether two recordings can be compared at all, and what speaks against it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tracer.catalog import HARMLESS_LOSSES
from tracer.judge.migration.criteria import Criteria
from tracer.judge.migration.figures import Figure
from tracer.judge.migration.sample import Pair, Sample
from tracer.judge.words import percent
from tracer.record.meta import MachineKind

FEWEST_WINDOWS = 30
"""Fewer do not tell how much windows differ."""

_MOST_MISSING = 0.05  # of the windows: what fell into more may be what matters


@dataclass(frozen=True, slots=True)
class Objection:
    """Why figures of the two recordings must not be judged."""

    name: str
    """In a word or two, where it is one reason of several."""

    text: str
    only_deschedules: bool = False
    """Else against everything that was measured."""

    def concerns(self, figure: Figure) -> bool:
        return figure.measured and (figure.steal_matters or not self.only_deschedules)


def objections(before: Sample, after: Sample, criteria: Criteria) -> Iterator[Objection]:
    for side, sample in (("before", before), ("after", after)):
        yield from _too_short(side, sample)
        yield from _gaps(side, sample)
        yield from _losses(side, sample, criteria.max_loss)
        if not knows_steal(sample):
            yield Objection(
                f"steal unknown {side}",
                f"{side}: a {sample.meta.machine.kind} machine, where what the hypervisor took "
                "cannot be told, neither as steal nor as stalls",
                only_deschedules=True,
            )
    yield from _other_work(before, after, criteria)


def knows_steal(sample: Sample) -> bool:
    """Whether deschedules have what a hypervisor took, if there is one."""
    bare = sample.meta.machine.kind is MachineKind.BARE_METAL
    return bare or not {"steal", "stall"} <= set(sample.cannot_tell)


def _too_short(side: str, sample: Sample) -> Iterator[Objection]:
    windows = len(sample.seconds)
    if windows < FEWEST_WINDOWS:
        minutes = FEWEST_WINDOWS * sample.window_seconds // 60
        text = f"{side}: {windows} windows only; record at least {minutes} minutes"
        yield Objection(f"too short {side}", text)


def _gaps(side: str, sample: Sample) -> Iterator[Objection]:
    windows = len(sample.seconds) + sample.missing
    if sample.missing > _MOST_MISSING * windows:
        text = f"{side}: nothing is known of {sample.missing} of {windows} windows"
        yield Objection(f"gaps {side}", f"{text}; choose a time without gaps")


def _losses(side: str, sample: Sample, most: float) -> Iterator[Objection]:
    lost = falsifying(sample)
    if sum(lost.values()) > most * sample.steps.sum():
        text = f"{side}: lost {named(lost)}; docs/metrics.md says of what: mend it and record again"
        yield Objection(f"losses {side}", text)


def falsifying(sample: Sample) -> dict[str, int]:
    """Losses by which a ledger or a histogram is wrong, by reason."""
    return {r: n for r, n in sample.lost.items() if r not in HARMLESS_LOSSES}


def named(lost: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {n:,}" for reason, n in sorted(lost.items()))


def _other_work(before: Sample, after: Sample, criteria: Criteria) -> Iterator[Objection]:
    mixes = _mix(before), _mix(after)
    moved = sum(abs(mixes[0][pair] - mixes[1][pair]) for pair in mixes[0] | mixes[1]) / 2
    if moved > criteria.max_mix_change:
        yield Objection(
            "another mix",
            f"the work differs: {percent(moved, 1)} of the steps are of another tenant or kind, "
            f"{percent(criteria.max_mix_change, 1)} at most can be compared; {_differing(*mixes)}",
        )
    if not (_rate(before) and _rate(after)):
        return
    change = _rate(after) / _rate(before)
    if not 1 / criteria.max_rate_change <= change <= criteria.max_rate_change:
        yield Objection(
            "another load",
            f"the load differs: {_rate(before):.4g} steps a second before, {_rate(after):.4g} "
            f"after, a factor of {criteria.max_rate_change:g} at most can be compared",
        )


def _mix(sample: Sample) -> Counter[Pair]:
    """The part of each tenant and kind in all steps."""
    counts = {
        pair: times.observations
        for pair, times in sample.elapsed.items()
        if pair not in sample.stages
    }
    total = sum(counts.values())
    return Counter({pair: count / total for pair, count in counts.items()})


def _differing(before: Counter[Pair], after: Counter[Pair]) -> str:
    pair = max(before | after, key=lambda pair: abs(before[pair] - after[pair]))
    return f"{' '.join(pair)} {percent(before[pair], 1)} before, {percent(after[pair], 1)} after"


def _rate(sample: Sample) -> float:
    seconds = float(sample.seconds.sum())
    return float(sample.steps.sum()) / seconds if seconds else 0.0
