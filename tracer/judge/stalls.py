"""What stalls of CPUs say about the machine beneath, in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from tracer.host.facts import format_cpus
from tracer.judge.findings import Finding, Sure, Weight
from tracer.judge.words import clipped, count, duration
from tracer.ledger.stalls import StallRow
from tracer.ledger.summary import Summary
from tracer.model import Stall, StalledThread

_SHOWN = 3  # single stalls, and threads that one hit
_SCOPES = {
    "one": "one CPU alone",
    "some": "several CPUs at once",
    "all_but_one": "all CPUs but one",
    "all": "the whole machine",
    "unknown": "one CPU, while no other could tell",
}
_IMPLIES = {
    "one": "a virtual CPU waited for a core of the host: nothing in here can shorten that",
    "some": "virtual CPUs waited for cores of the host, and for each other (co-stop)",
    "all_but_one": "virtual CPUs waited for each other (co-stop): nothing in here can shorten that",
    "all": "the host stopped the machine: snapshot, live migration, a limit on all of its CPUs",
    "unknown": "the hypervisor stopped it, alone or with others that slept",
}
_ON_METAL = (
    "interrupts were off, or the firmware had the CPU (SMI): no hypervisor is there to blame"
)


def as_lines(summary: Summary) -> Iterator[str]:
    """By scope, then the longest one by one; nothing where there was none."""
    if not summary.stalls:
        return
    yield f"CPUs stood still: {'; '.join(map(_row, summary.stalls))}"
    for stall in summary.longest_stalls[:_SHOWN]:
        yield f"  {in_words(stall, summary.unix_offset_ns)}"


def _row(row: StallRow) -> str:
    times = f"{row.count:,} x {_SCOPES[row.scope]}, {duration(row.seconds)}"
    return f"{times}, longest {duration(row.longest)}" if row.count > 1 else times


def in_words(stall: Stall, unix_offset_ns: int) -> str:
    """
    When, for how long, which CPUs, by chance or not, which steps it hit.

    :param unix_offset_ns: what the wall clock showed more than CLOCK_MONOTONIC
    """
    when = datetime.fromtimestamp((stall.begin_ns + unix_offset_ns) / 1e9, UTC)
    words = f"{when:%H:%M:%S}.{when.microsecond // 1000:03} UTC for {_length(stall)}: "
    words += f"CPU {format_cpus(stall.cpus)}"
    if stall.running:
        words += f", while {format_cpus(stall.running)} ran"
    if len(stall.cpus) > 1:
        words += f"; by chance {_odds(stall.chance)}"
    threads = sorted(stall.hit, key=lambda thread: -thread.lost_ns)
    if threads:
        named = map(_victim, threads[:_SHOWN])
        others = len(threads) - _SHOWN
        words += f"; hit {', '.join(named)}"
        words += f" and {count(others, 'other thread')}" if others > 0 else ""
    return words


def _victim(thread: StalledThread) -> str:
    step = f"step {thread.step}" if thread.step else "in no step"
    return f"{clipped(thread.tenant, 24)} {step}"


def _length(stall: Stall) -> str:
    length = duration(stall.lost_ns / 1e9)
    if stall.uncertain_ns is None:
        return f"{length} or more"
    return f"{length} ±{duration(stall.uncertain_ns / 1e9)}"


def _odds(chance: float) -> str:
    if chance < 1e-9:
        return "less than 1 in 10^9"
    return f"1 in {1 / chance:,.0f}" if chance < 0.5 else "likely"


def findings(summary: Summary) -> Iterator[Finding]:
    """One, if there was any: what it implies goes by the scope that cost most."""
    for most in summary.stalls[:1]:
        yield Finding(
            "stalls",
            Weight.COSTS,
            Sure.CERTAIN if most.scope != "unknown" else Sure.LIKELY,
            f"in {duration(summary.seconds)} CPUs stood still: "
            f"{'; '.join(map(_row, summary.stalls))}",
            _ON_METAL if summary.bare_metal else _IMPLIES[most.scope],
            "firmware settings; what runs with interrupts off"
            if summary.bare_metal
            else "give the times to whoever runs the host; leave it, or share it with fewer",
        )
