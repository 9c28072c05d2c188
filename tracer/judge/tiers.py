"""
The ranking of causes: how much of the tail each tier carries, from measured ledgers.

A tier drowns those below it: while a hypervisor stops CPUs for 400 ms, no placement of memory can
be seen. So work goes to the highest tier that carries the tail. What no ledger tells apart, such as
accesses to another node, is inside of ``running``, which bounds it; a second bound is known from
elsewhere, and named so.
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
_SHARING_NS, _BANDWIDTH = 5_000, 0.0002  # a step; part of its wall time
_ELSEWHERE = "measured for another engine, 157 ms a step, slots behind a lock:"


@dataclass(frozen=True, slots=True)
class Tier:
    number: int
    name: str
    causes: tuple[str, ...]
    """Whose time it is; none for a tier that is all inside of ``running``."""


HYPERVISOR = Tier(0, "hypervisor", ("steal", "stall"))
FIRMWARE = Tier(0, "firmware, or interrupts off", HYPERVISOR.causes)
"""What the hypervisor's place is, where there is none."""
PLACEMENT = Tier(2, "NUMA placement", ("numa_migrate",))

TIERS = (
    HYPERVISOR,
    Tier(1, "limits and preemption", ("quota", "rt_limit", "preempted", "runqueue")),
    PLACEMENT,
    Tier(3, "cross-socket latency", ()),
    Tier(4, "cache-line sharing", ()),
    Tier(5, "memory bandwidth", ()),
)
_TIERED = frozenset(cause for tier in TIERS for cause in tier.causes)
_INSIDE = {2: "remote accesses: inside of running"} | dict.fromkeys(
    (3, 4, 5), "not measured: inside of running"
)
"""What of a tier has no cause."""


@dataclass(frozen=True, slots=True)
class TierTime:
    """What a tail step spends in a tier beyond a median step, on average."""

    tier: Tier
    ns: Fact[int]
    """Measured. Of a tier of which a part cannot be told, the rest: the source says so."""

    hidden_ns: int = 0
    """What that part can be at most."""

    basis: str = ""
    """What the bound rests on; empty where nothing is hidden."""

    @property
    def measured_ns(self) -> int:
        """0 where the tail has less of it than the median."""
        return max(0, value_of(self.ns) or 0)

    @property
    def at_most_ns(self) -> int:
        """What work on this tier could gain."""
        return self.measured_ns + self.hidden_ns


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
    def remote_at_most_ns(self) -> int:
        """What accesses to another node may have of ``running``."""
        return sum(each.hidden_ns for each in self.tiers if each.tier is PLACEMENT)

    @property
    def below_at_most_ns(self) -> int:
        """What work on all tiers below the carrier could gain together."""
        if self.carrier is None:
            return 0
        lower = [each for each in self.tiers if each.tier.number > self.carrier.number]
        hidden = sum(each.hidden_ns for each in lower)
        return sum(each.measured_ns for each in lower) + min(hidden, _slower_ns(self.excess_ns))


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
        TierTime(tier, _told(tier, excess, untold), *_hidden(tier, row.tail, excess, untold))
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
            more = f"at most {duration(each.hidden_ns / 1e9)} more" if each.basis else ""
            notes = [each.ns.source, more, each.basis]
        else:
            time = f"{'at most':>7} {duration(each.at_most_ns / 1e9):>8}"
            notes = [each.ns.reason, each.basis]
        note = "; ".join(filter(None, notes))
        yield f"  {each.tier.number} {each.tier.name:22} {time}  {note}".rstrip()


def verdict(ranking: Ranking) -> str:
    """In a sentence: how long the tail is, which tier carries it, what lower tiers could gain."""
    if ranking.longer_ns <= 0:
        return "no tail: its slowest steps are no longer than the median"
    longer = f"the tail is {duration(ranking.longer_ns / 1e9)} longer than the median"
    if ranking.carrier is None:
        cause, ns = max(ranking.elsewhere_ns.items(), key=lambda item: item[1])
        most = f"{longer}, carried by no tier: most is {CAUSES[cause]}, {duration(ns / 1e9)}"
        remote = duration(ranking.remote_at_most_ns / 1e9)
        return f"{most}, of it remote accesses at most {remote}" if cause == "running" else most
    (own,) = (each for each in ranking.tiers if each.tier is ranking.carrier)
    carried, below = value_of(own.ns) or 0, ranking.below_at_most_ns
    return (
        f"{longer}, carried by tier {own.tier.number}, {own.tier.name}:"
        f" {duration(carried / 1e9)}; work on lower tiers gains at most {duration(below / 1e9)}"
    )


def _told(tier: Tier, excess: Mapping[str, int], untold: Mapping[str, str]) -> Fact[int]:
    told = [cause for cause in tier.causes if cause not in untold]
    parts = [f"{cause}: {untold[cause]}" for cause in tier.causes if cause in untold]
    missing = "; ".join([*parts, *filter(None, [_INSIDE.get(tier.number)])])
    if not told:
        return Unknown(missing)
    return Known(sum(excess[cause] for cause in told), f"without {missing}" if missing else "")


def _hidden(
    tier: Tier, tail: ByCause, excess: Mapping[str, int], untold: Mapping[str, str]
) -> tuple[int, str]:
    """``hidden_ns`` and ``basis``. A limit that cannot be told looks like another of its tier."""
    if tier.number == HYPERVISOR.number and untold.keys() & set(tier.causes):
        return max(0, excess["running"]), "what cannot be told looks like running"
    if tier.number not in _INSIDE:
        return 0, ""
    running_ns, wall_ns = tail["running"] * 1e9, sum(tail.values()) * 1e9
    bound, basis = {
        2: (_REMOTE * running_ns + tail["fault"] * 1e9, _REMOTE_BASIS),
        3: (_REMOTE * running_ns, _REMOTE_BASIS),
        4: (_SHARING_NS, f"{_ELSEWHERE} 1 to 5 us a step"),
        5: (_BANDWIDTH * wall_ns, f"{_ELSEWHERE} below 0.02 % of a step"),
    }[tier.number]
    return round(min(bound, _slower_ns(excess))), basis


def _slower_ns(excess: Mapping[str, int]) -> int:
    """Slower memory shows as longer running, and as time to handle faults; nowhere else."""
    return max(0, excess["running"]) + max(0, excess["fault"])


def _carrier(tiers: tuple[TierTime, ...], longer_ns: int) -> Tier | None:
    if longer_ns <= 0:
        return None
    heavy = (t.tier for t in tiers if (value_of(t.ns) or 0) >= CARRIES * longer_ns)
    return next(heavy, None)
