"""What can be done against a tail: on this machine, and for the tail that was ranked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tracer.catalog import TO_OTHERS
from tracer.host.facts import Fact, Known, Unknown, value_of
from tracer.host.machine import Machine, Workload
from tracer.judge import effects
from tracer.judge.effects import Effect, Patient
from tracer.judge.tiers import Ranking
from tracer.judge.words import CAUSES, duration, percent
from tracer.ledger.stalls import StallRow

_IN_VAIN = 0.05  # part of what the tail takes longer that is not worth work


@dataclass(frozen=True, slots=True)
class Remedy:
    name: str
    acts_on: tuple[int | str, ...]
    """Tiers and causes whose time it can take away; none for one that only shows something."""

    effect: Effect
    reason: str
    gain_at_most_ns: Fact[int]
    """Of the ranked tail, per step."""


def remedies(
    machine: Machine,
    workloads: Sequence[Workload],
    ranking: Ranking | None = None,
    stalls: Sequence[StallRow] = (),
) -> list[Remedy]:
    """
    Those against the highest tiers first.

    :param ranking: of the tail that they are for
    :param stalls: that were measured on the machine
    """
    patient = Patient(machine, workloads, stalls)
    found = (
        Remedy(name, acts_on, judged.effect, judged.reason, _gain(acts_on, ranking))
        for name, acts_on, judge in _REMEDIES
        for judged in [judge(patient)]
    )
    return [_for_this_tail(remedy, ranking) if ranking else remedy for remedy in found]


def _gain(acts_on: tuple[int | str, ...], ranking: Ranking | None) -> Fact[int]:
    if ranking is None:
        return Unknown("no tail has been ranked")
    if not acts_on:
        return Unknown("it takes no time away")
    of_tiers = [each for each in ranking.tiers if each.tier.number in acts_on]
    causes = [cause for cause in acts_on if isinstance(cause, str)]
    bounded = any(each.basis for each in of_tiers) or any(c in ranking.cannot_tell for c in causes)
    gain = sum(each.at_most_ns for each in of_tiers) + sum(map(ranking.cause_at_most_ns, causes))
    return Known(gain, "bound" if bounded else "measured")


def _for_this_tail(remedy: Remedy, ranking: Ranking) -> Remedy:
    gain = value_of(remedy.gain_at_most_ns)
    if remedy.effect is not Effect.WORKS or gain is None or ranking.longer_ns <= 0:
        return remedy
    if gain > _IN_VAIN * ranking.longer_ns:
        return remedy
    part = percent(gain, ranking.longer_ns)
    share = "nothing" if part == percent(0, 1) else f"{part} at most"
    return replace(remedy, effect=Effect.CANNOT, reason=f"{share} of this tail is {_time(remedy)}")


def _time(remedy: Remedy) -> str:
    """``preempted, in the run queue``; ``of tier 2``."""
    return ", ".join(
        CAUSES[each] if isinstance(each, str) else f"of tier {each}" for each in remedy.acts_on
    )


_METAL = "bare metal, static CPU manager, single-numa-node"
_REMEDIES: Sequence[tuple[str, tuple[int | str, ...], effects.Judge]] = (
    (_METAL, (0, 2, *TO_OTHERS), effects.leave_the_hypervisor),
    ("fewer virtual CPUs", (0,), effects.fewer_cpus),
    ("enable the steal clock", (), effects.enable_steal_clock),
    ("pin threads", TO_OTHERS, effects.needs_cpus("the scheduler does not move them")),
    ("isolate CPUs", TO_OTHERS, effects.isolate),
    ("move service threads", TO_OTHERS, effects.needs_cpus("they no longer preempt inference")),
    ("SCHED_FIFO", TO_OTHERS, effects.realtime),
    ("raise the real-time budget", ("rt_limit",), effects.raise_realtime_budget),
    ("lift the quota", ("quota",), effects.lift_quota),
    ("steer interrupts", ("irq", "softirq"), effects.steer_interrupts),
    ("show virtual NUMA nodes", (2,), effects.show_nodes),
    ("bind memory", (2,), effects.bind_memory),
    ("first touch by the user of a page", (2,), effects.bind_memory),
    ("pad shared arrays", (4,), effects.pad),
    ("huge pages", ("running", "fault"), effects.use_huge_pages),
)


def in_words(judged: Sequence[Remedy]) -> Iterator[tuple[Effect, str]]:
    """For each effect, remedies of the same reason together: ``bind memory, first touch: why``."""
    for effect in Effect:
        names: dict[str, list[str]] = {}
        for remedy in judged:
            if remedy.effect is effect:
                names.setdefault(_why(remedy), []).append(remedy.name)
        for why, same in names.items():
            yield effect, f"{', '.join(same)}: {why}"


def _why(remedy: Remedy) -> str:
    gain = value_of(remedy.gain_at_most_ns)
    if remedy.effect is not Effect.WORKS or gain is None:
        return remedy.reason
    return f"{remedy.reason}; gains at most {duration(gain / 1e9)}"
