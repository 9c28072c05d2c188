"""What is misplaced, in words: the segment or process, where it is, where its threads are, why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tracer.host.facts import Known, Unknown, format_cpus, value_of
from tracer.judge.findings import Finding, Sure, Weight
from tracer.judge.placement import (
    MOST,
    Placement,
    SegmentVerdict,
    TargetVerdict,
    Verdict,
    main_node,
    part_on,
)
from tracer.judge.words import count
from tracer.ledger.labels import pool_of
from tracer.memory.devices import Accelerator
from tracer.memory.first_touch import FirstTouch
from tracer.memory.numa_maps import DEFAULT
from tracer.memory.pages import Pages, mismatch, shares
from tracer.memory.watch import TargetMemory
from tracer.targets.text import visible

_TOUCHERS = 3  # that are named, of those who touched a segment first


def misplaced(placement: Placement) -> Iterator[Finding]:
    users = {seen.target.pid: seen for seen in placement.state.targets}
    for segment in placement.segments:
        if segment.verdict is Verdict.MISPLACED:
            yield _segment(segment, [users[pid] for pid in segment.segment.pids])
    for target in placement.targets:
        yield from _process(target)
        yield from _accelerators(target, placement.state.accelerators)


def in_words(by_node: Mapping[int, float], node_word: str = "node ") -> str:
    """``83 % on node 0``; the largest share first, without those that round to nothing."""
    told = sorted(by_node.items(), key=lambda item: -item[1])
    return ", ".join(
        f"{100 * share:.0f} % on {node_word}{node}" for node, share in told if share > 0.005
    )


def touchers_in_words(touch: FirstTouch) -> str:
    """``sampler (pid 7) on node 0: 75 %, main (pid 9) on node 1: 25 % of 4,000 pages seen``."""
    pages: Counter[str] = Counter()
    for each in touch.by:
        pages[f"{pool_of(visible(each.name.encode()))} (pid {each.pid}) on node {each.node}"] += (
            each.pages
        )
    told = [f"{who}: {100 * n / touch.pages:.0f} %" for who, n in pages.most_common(_TOUCHERS)]
    more = len(pages) - len(told)
    others = f" and {count(more, 'other')}" if more else ""
    return f"{', '.join(told)}{others} of {count(touch.pages, 'page')} seen"


def _segment(each: SegmentVerdict, users: list[TargetMemory]) -> Finding:
    on, pages = each.segment.pages.shares, each.segment.pages
    busiest = max(users, key=lambda user: sum(user.runs.values()))
    should = f"its threads ran {in_words(shares(each.runs))}"
    if isinstance(each.expected, Known) and part_on(on, each.expected.value) < MOST:
        nodes = format_cpus(each.expected.value)
        should = f"expected on node {nodes} ({each.expected.source})"
    seen = f"{each.name} is {in_words(on)}, but {should}; {who(busiest)} is {_bound(busiest)}"
    if isinstance(each.first_touch, Known):
        seen += f"; touched first by {touchers_in_words(each.first_touch.value)}"
    return Finding(
        "misplaced_segment",
        Weight.COSTS,
        _sure(pages),
        seen,
        "every access from the other node crosses the interconnect, at about twice the latency",
        _remedy(each),
    )


def _remedy(each: SegmentVerdict) -> str:
    node, touch = main_node(shares(each.runs)), value_of(each.first_touch)
    by_touch = touch and value_of(each.segment.policy) == DEFAULT
    if touch and by_touch and node is not None and shares(touch.by_node).get(node, 0.0) < MOST:
        first = f"have a thread on node {node} touch it first"
        return f"{first}, or bind it (mbind, numactl --membind), or move it (migratepages)"
    return "bind it before its first touch (mbind, numactl --membind), or move it (migratepages)"


def _process(each: TargetVerdict) -> Iterator[Finding]:
    """By its private memory: shared segments have findings of their own."""
    private, ran = value_of(each.private), shares(each.seen.runs)
    if not private or main_node(ran) is None:
        return  # not known, or no node would be right for all of its threads
    if (mismatch(ran, private.by_node) or 0.0) > 1 - MOST:
        yield Finding(
            "misplaced_process",
            Weight.COSTS,
            _sure(private),
            f"private memory of {who(each.seen)} is {in_words(private.shares)}, but it ran"
            f" {in_words(ran)}; it is {_bound(each.seen)}",
            "its threads reach their own memory across the interconnect",
            "bind threads and memory to one node (numactl --cpunodebind --membind)",
        )


def _accelerators(each: TargetVerdict, there: Mapping[str, Accelerator]) -> Iterator[Finding]:
    """Buffers go from where the threads and their memory are to the device, and back."""
    ran, private = shares(each.seen.runs), value_of(each.private)
    at = {main_node(ran), main_node(private.shares if private else {})} - {None}
    for address in sorted(value_of(each.seen.accelerators) or ()):
        node = value_of(there[address].node) if address in there else None
        if node is None or at <= {node}:
            continue  # not known, or near
        yield Finding(
            "remote_accelerator",
            Weight.COSTS,
            Sure.CERTAIN,
            f"accelerator {address} is on {there[address].place}; {who(each.seen)}, which uses it,"
            f" ran {in_words(ran) or 'nowhere'}; its private memory is {_private(each)}",
            "each buffer crosses the interconnect on its way to the device and back",
            f"run it and bind its memory on node {node} (numactl --cpunodebind={node}"
            f" --membind={node}; topologyManagerPolicy: single-numa-node)",
        )


def _private(each: TargetVerdict) -> str:
    """Where it is, and how much of all memory of the process stays there."""
    if isinstance(each.private, Unknown):
        return f"not known: {each.private.reason}"
    locked = value_of(each.locked_bytes)
    stays = f", {locked / 2**20:,.1f} MiB locked or pinned" if locked else ""
    return f"{in_words(each.private.value.shares) or 'nowhere'}{stays}"


def _sure(pages: Pages) -> Sure:
    return Sure.LIKELY if pages.error else Sure.CERTAIN


def _bound(seen: TargetMemory) -> str:
    """Of the most frequent kind of its threads: ``pinned to node 1, memory unbound``."""
    if isinstance(seen.pinning, Unknown):
        return f"pinned to nothing that is known: {seen.pinning.reason}"
    placed, _ = seen.pinning.value[0]
    pinned = "not pinned to a node"
    if len(placed.runs_on) == 1:
        pinned = f"pinned to node {format_cpus(placed.runs_on)}"
    policy = value_of(placed.policy)
    memory = {None: "policy unknown", DEFAULT: "unbound"}.get(policy, policy)
    return f"{pinned}, memory {memory}"


def who(seen: TargetMemory) -> str:
    return f"{seen.target.name} (pid {seen.target.pid})"
