"""
The ranking of causes: how much of the tail each tier carries, from measured ledgers.

A tier drowns those below it: while a hypervisor stops CPUs for 400 ms, no placement of memory can
be seen. So work goes to the highest tier that carries the tail. Tiers that no ledger tells apart
yet are inside of ``running``, which bounds them; a second bound is known from elsewhere, and named
so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tracer.host.facts import Fact, Known, Unknown, value_of
from tracer.judge.words import CAUSES, duration, percent
from tracer.ledger.summary import ByCause, StepRow, Summary

CARRIES = 0.25
"""Part of what the tail takes longer from which on a tier carries it: less is not where to begin,
and no other tier can be said to be drowned by it."""

_REMOTE = 1 - 80 / 250  # of an access: 80-120 ns on the own node, 200-250 ns on another
_REMOTE_BASIS = "if all its running were remote accesses at 250 ns that could take 80"
_IN_FAULTS = "fault", "numa_migrate"
_SHARING_NS, _BANDWIDTH = 5_000, 0.0002  # a step; part of its wall time
_ELSEWHERE = "measured for another engine, 157 ms a step, slots behind a lock:"


@dataclass(frozen=True, slots=True)
class Tier:
    number: int
    name: str
    causes: tuple[str, ...]
    """Whose time it is; none for a tier that is inside of ``running``."""


HYPERVISOR = Tier(0, "hypervisor", ("steal", "stall"))
FIRMWARE = Tier(0, "firmware, or interrupts off", HYPERVISOR.causes)
"""What the hypervisor's place is, where there is none."""

TIERS = (
    HYPERVISOR,
    Tier(1, "limits and preemption", ("quota", "rt_limit", "preempted", "runqueue")),
    Tier(2, "NUMA placement", ()),
    Tier(3, "cross-socket latency", ()),
    Tier(4, "cache-line sharing", ()),
    Tier(5, "memory bandwidth", ()),
)
_TIERED = frozenset(cause for tier in TIERS for cause in tier.causes)


@dataclass(frozen=True, slots=True)
class TierTime:
    """What a tail step spends in a tier beyond a median step, on average."""

    tier: Tier
    ns: Fact[int]
    """Measured. Of a tier of which one cause cannot be told, the others: the source says so."""

    at_most_ns: int
    """What work on this tier could gain."""

    basis: str = ""
    """What the bound rests on; empty where it is the time measured."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Of the steps of one kind that served one tenant."""

    tenant: str
    step: str
    longer_ns: int
    """The average tail step beyond the average median step."""

    excess_ns: Mapping[str, int]
    """The same by cause; sums to ``longer_ns``."""

    cannot_tell: Mapping[str, str]
    """Causes whose time is in others, each with the reason."""

    tiers: tuple[TierTime, ...]
    carrier: Tier | None
    """The highest tier that carries the tail."""

    @property
    def elsewhere_ns(self) -> Mapping[str, int]:
        """Causes of no tier, ``running`` too: the engine's own work and its waits for others."""
        return {cause: ns for cause, ns in self.excess_ns.items() if cause not in _TIERED}

    def cause_at_most_ns(self, cause: str) -> int:
        """What work on a cause could gain: its own time; its tier's when it cannot be told."""
        if cause not in self.cannot_tell:
            return max(0, self.excess_ns[cause])
        return sum(each.at_most_ns for each in self.tiers if cause in each.tier.causes)

    @property
    def below_at_most_ns(self) -> int:
        """What work on all tiers below the carrier could gain together."""
        if self.carrier is None:
            return 0
        lower = [each for each in self.tiers if each.tier.number > self.carrier.number]
        measured = sum(each.at_most_ns for each in lower if each.tier.causes)
        bounds = sum(each.at_most_ns for each in lower if not each.tier.causes)
        return measured + min(bounds, _inside_running_ns(self.excess_ns))


def rank(
    row: StepRow, cannot_tell: Mapping[str, str] | None = None, *, bare_metal: bool = False
) -> Ranking:
    """
    ``row.tail`` minus ``row.typical``, by tier.

    :param cannot_tell: causes that the machine cannot tell -> the reason
    :param bare_metal: known to have no hypervisor, so none steals
    """
    excess = {cause: round((row.tail[cause] - row.typical[cause]) * 1e9) for cause in row.tail}
    longer = sum(excess.values())
    untold = {
        cause: reason
        for cause, reason in (cannot_tell or {}).items()
        if not (bare_metal and cause == "steal")
    }
    tiers = tuple(
        _measured(tier, excess, untold)
        if tier.causes
        else _bounded(tier, row.tail, _inside_running_ns(excess))
        for tier in (FIRMWARE if bare_metal else HYPERVISOR, *TIERS[1:])
    )
    return Ranking(row.tenant, row.step, longer, excess, untold, tiers, _carrier(tiers, longer))


def rank_tails(summary: Summary) -> list[tuple[StepRow, Ranking]]:
    """Of all kinds of steps that have a tail, most time in tails first."""
    tails = [row for row in summary.rows if _tail_seconds(row) > 0]
    return [
        (row, rank(row, summary.cannot_tell, bare_metal=summary.bare_metal))
        for row in sorted(tails, key=_tail_seconds, reverse=True)
    ]


def _tail_seconds(row: StepRow) -> float:
    """What all steps of the tail together took longer than median ones."""
    return row.tail_count * (sum(row.tail.values()) - sum(row.typical.values()))


def as_lines(ranking: Ranking) -> Iterator[str]:
    """The verdict, then a line for each tier."""
    yield f"{ranking.tenant} {ranking.step}: {verdict(ranking)}"
    for each in ranking.tiers:
        if isinstance(each.ns, Known):
            share = percent(each.ns.value, ranking.longer_ns)
            time = f"{duration(each.ns.value / 1e9):>9} {share:>6}"
            note = each.ns.source
        else:
            time = f"{'at most':>7} {duration(each.at_most_ns / 1e9):>8}"
            note = f"{each.ns.reason}; {each.basis}" if each.basis else each.ns.reason
        yield f"  {each.tier.number} {each.tier.name:22} {time}  {note}".rstrip()


def verdict(ranking: Ranking) -> str:
    """In a sentence: how long the tail is, which tier carries it, what lower tiers could gain."""
    if ranking.longer_ns <= 0:
        return "no tail: its slowest steps are no longer than the median"
    longer = f"the tail is {duration(ranking.longer_ns / 1e9)} longer than the median"
    if ranking.carrier is None:
        cause, ns = max(ranking.elsewhere_ns.items(), key=lambda item: item[1])
        return f"{longer}, carried by no tier: most is {CAUSES[cause]}, {duration(ns / 1e9)}"
    (own,) = (each for each in ranking.tiers if each.tier is ranking.carrier)
    carried, below = value_of(own.ns) or 0, ranking.below_at_most_ns
    return (
        f"{longer}, carried by tier {own.tier.number}, {own.tier.name}:"
        f" {duration(carried / 1e9)}; work on lower tiers gains at most {duration(below / 1e9)}"
    )


def _measured(tier: Tier, excess: Mapping[str, int], cannot_tell: Mapping[str, str]) -> TierTime:
    told = [cause for cause in tier.causes if cause not in cannot_tell]
    missing = "; ".join(f"{c}: {cannot_tell[c]}" for c in tier.causes if c in cannot_tell)
    ns = sum(excess[cause] for cause in told)
    if tier.number != HYPERVISOR.number or not missing:
        return TierTime(tier, Known(ns, f"without {missing}" if missing else ""), max(0, ns))
    # A limit that cannot be told looks like preemption, of the same tier; a hypervisor does not.
    at_most = max(0, ns) + max(0, excess["running"])
    fact = Known(ns, f"without {missing}") if told else Unknown(missing)
    return TierTime(tier, fact, at_most, "what cannot be told looks like running")


def _bounded(tier: Tier, tail: ByCause, inside_ns: int) -> TierTime:
    wall_ns = sum(tail.values()) * 1e9
    in_faults = sum(tail[cause] for cause in _IN_FAULTS)
    known = {
        2: (_REMOTE * tail["running"] * 1e9 + in_faults * 1e9, _REMOTE_BASIS),
        3: (_REMOTE * tail["running"] * 1e9, _REMOTE_BASIS),
        4: (_SHARING_NS, f"{_ELSEWHERE} 1 to 5 us a step"),
        5: (_BANDWIDTH * wall_ns, f"{_ELSEWHERE} below 0.02 % of a step"),
    }
    bound, basis = known[tier.number]
    return TierTime(
        tier, Unknown("not measured: inside of running"), round(min(bound, inside_ns)), basis
    )


def _inside_running_ns(excess_ns: Mapping[str, int]) -> int:
    """Slower memory shows as longer running, and as time to handle faults; nowhere else."""
    return sum(max(0, excess_ns[cause]) for cause in ("running", *_IN_FAULTS))


def _carrier(tiers: tuple[TierTime, ...], longer_ns: int) -> Tier | None:
    if longer_ns <= 0:
        return None
    heavy = (t.tier for t in tiers if (value_of(t.ns) or 0) >= CARRIES * longer_ns)
    return next(heavy, None)
