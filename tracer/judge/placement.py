"""
Verdicts on where memory is: each shared segment against the node it should be on, each process's
own memory against the nodes that its threads run on.
"""

from __future__ import annotations

import fnmatch
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tracer.config import ExpectedNode
from tracer.host.facts import Fact, Known, Unknown, parse_cpus, value_of
from tracer.memory.first_touch import FirstTouch, FirstTouches, first_touch_of
from tracer.memory.pages import Pages, add_up, mismatch, shares
from tracer.memory.segments import Segment
from tracer.memory.watch import MemoryState, TargetMemory
from tracer.targets.text import visible

MOST = 0.8
"""The part from which on threads, or pages, count as being on one node."""

_DELETED = " (deleted)"
# From the first separator with a word behind it that has a digit in it: rl_sampling-k3x_ab.
_ONE_OF_MANY = re.compile(r"([-_.])[^-_./\d]*\d[^/]*$")
_POLICY_NODES = re.compile(r":([\d,-]+)$")


class Verdict(StrEnum):
    PLACED = "placed"
    MISPLACED = "misplaced"
    SHARED = "shared by nodes"
    """Its threads run on several: no node is right for all of them."""

    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SegmentVerdict:
    segment: Segment
    name: str
    tenants: frozenset[str]
    runs: Mapping[int, float]
    """CPU seconds by node of the processes that map it."""

    expected: Fact[frozenset[int]]
    """By configuration, by policy, or by where its threads run: the source says which."""

    verdict: Verdict
    first_touch: Fact[FirstTouch]


@dataclass(frozen=True, slots=True)
class TargetVerdict:
    seen: TargetMemory
    private: Fact[Pages]
    pages: Fact[Pages]
    """Private and shared."""

    mismatch: Fact[float]
    locked_bytes: Fact[int]


@dataclass(frozen=True, slots=True)
class Placement:
    state: MemoryState
    segments: tuple[SegmentVerdict, ...]
    targets: tuple[TargetVerdict, ...]


NOT_TRACED: Fact[FirstTouches] = Unknown(
    "only an agent sees that: tailtrace run, then tailtrace memory on its history or recording"
)


def judge(
    state: MemoryState,
    expected: Sequence[ExpectedNode] = (),
    first: Fact[FirstTouches] = NOT_TRACED,
) -> Placement:
    by_pid = {seen.target.pid: seen for seen in state.targets}
    segments = tuple(_segment(segment, by_pid, expected, first) for segment in state.segments)
    targets = tuple(_target(seen, state.segments) for seen in state.targets)
    return Placement(state, segments, targets)


def mismatch_by_tenant(
    targets: Sequence[TargetVerdict], label: Callable[[str], str]
) -> dict[str, float]:
    """Of all processes of a tenant's label together; without those of which it is not known."""
    known: dict[str, list[tuple[Mapping[int, float], Pages]]] = defaultdict(list)
    for each in targets:
        if isinstance(each.pages, Known):
            known[label(each.seen.target.tenant)].append((each.seen.runs, each.pages.value))
    found = {
        tenant: mismatch(add_up(runs for runs, _ in several), add_up(p.by_node for _, p in several))
        for tenant, several in known.items()
    }
    return {tenant: value for tenant, value in found.items() if value is not None}


def segment_name(path: str) -> str:
    """``/dev/shm/rl_sampling-*`` for a name that a library made up."""
    name = visible(path.removesuffix(_DELETED).encode())
    return _ONE_OF_MANY.sub(r"\1*", name)


def main_node(on: Mapping[int, float]) -> int | None:
    """The node with MOST of it; None when there is no such."""
    return next((node for node, share in on.items() if share >= MOST), None)


def part_on(on: Mapping[int, float], nodes: frozenset[int]) -> float:
    return sum(share for node, share in on.items() if node in nodes)


def _segment(
    segment: Segment,
    by_pid: Mapping[int, TargetMemory],
    rules: Sequence[ExpectedNode],
    first: Fact[FirstTouches],
) -> SegmentVerdict:
    users = [by_pid[pid] for pid in segment.pids]
    runs, name = add_up(user.runs for user in users), segment_name(segment.path)
    expected = _expected(name, segment.policy, runs, rules)
    return SegmentVerdict(
        segment=segment,
        name=name,
        tenants=frozenset(user.target.tenant for user in users),
        runs=runs,
        expected=expected,
        verdict=_verdict(segment, runs, expected),
        first_touch=first_touch_of(segment.identity, first),
    )


def _expected(
    name: str, policy: Fact[str], runs: Mapping[int, float], rules: Sequence[ExpectedNode]
) -> Fact[frozenset[int]]:
    for rule in rules:
        if fnmatch.fnmatchcase(name, rule.segment):
            return Known(frozenset({rule.node}), "configuration")
    bound = _POLICY_NODES.search(value_of(policy) or "")
    if bound:
        return Known(parse_cpus(bound[1]), f"policy {value_of(policy)}")
    main = main_node(shares(runs))
    if main is not None:
        return Known(frozenset({main}), "where its threads run")
    return Unknown("its threads run on several nodes" if runs else "its threads do not run")


def _verdict(
    segment: Segment, runs: Mapping[int, float], expected: Fact[frozenset[int]]
) -> Verdict:
    on = segment.pages.shares
    if not on:
        return Verdict.UNKNOWN
    if isinstance(expected, Known) and part_on(on, expected.value) < MOST:
        return Verdict.MISPLACED
    main = main_node(shares(runs))
    if main is None:
        return Verdict.SHARED if runs else Verdict.UNKNOWN
    return Verdict.PLACED if on.get(main, 0.0) >= MOST else Verdict.MISPLACED


def _target(seen: TargetMemory, segments: Sequence[Segment]) -> TargetVerdict:
    private = seen.memory if isinstance(seen.memory, Unknown) else seen.memory.value.private
    locked = seen.memory if isinstance(seen.memory, Unknown) else seen.memory.value.locked_bytes
    if isinstance(private, Unknown):
        return TargetVerdict(seen, private, private, private, locked)
    shared = [each.pages for each in segments if seen.target.pid in each.pids]
    pages = Pages.sum([private.value, *shared])
    value = mismatch(seen.runs, pages.by_node)
    told = Unknown("its threads did not run") if value is None else Known(value)
    return TargetVerdict(seen, private, Known(pages, private.source), told, locked)
