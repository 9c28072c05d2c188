"""The memory report: allocations by node, processes, shared segments, and what is misplaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from tracer.host.facts import Fact, Known, Unknown, format_cpus, value_of
from tracer.judge.finding_lines import finding_lines, wrapped
from tracer.judge.misplaced import in_words, misplaced, touchers_in_words, who
from tracer.judge.placement import Placement, SegmentVerdict, TargetVerdict
from tracer.judge.words import clipped, compact, count, duration
from tracer.memory.first_touch import FirstTouch
from tracer.memory.numastat import Drift, Trend
from tracer.memory.pages import PAGE, Pages, shares
from tracer.memory.watch import MemoryState, TargetMemory
from tracer.model import Capability
from tracer.targets.text import visible

_ROWS, _KINDS = 12, 3
_NODES = "{:5} {:>10} {:>9} {:>9} {:>9}  {:>9} {:>9} {:>9}"
_PROCESSES = "{:16} {:>8}  {:22} {:22} {:>9} {:>10}"
_SEGMENTS = "{:24} {:>15}  {:22} {:>6} {:>5}  {}"


def as_lines(placement: Placement) -> Iterator[str]:
    state = placement.state
    findings = list(misplaced(placement))
    result = f"{count(len(findings), 'finding')} in {duration(state.seconds)}"
    yield f"tailtrace: {_looked_at(state)}, {result}"
    yield from ("", *_nodes(state.numastat, state.drift))
    if placement.targets:
        yield from ("", *_processes(placement.targets))
    if placement.segments:
        yield from ("", *_segments(placement.segments))
    for address, accelerator in state.accelerators.items():
        users = [who(seen) for seen in state.targets if address in _opened(seen)]
        used = f"; used by {', '.join(users[:_KINDS])}" if users else ""
        yield from wrapped(f"accelerator {address}  ", f"{accelerator.place}{used}")
    if state.more_segments:
        yield f"and {count(state.more_segments, 'smaller segment')}: memory.max_segments"
    for finding in findings:
        yield from ("", *finding_lines(finding))


def section(placement: Placement | None, capability: Capability) -> Iterator[str]:
    """Of the report: what is misplaced, or why that cannot be told."""
    if not capability.available:
        yield from ("", *wrapped("", f"placement: cannot be told here: {capability.reason}"))
    elif placement:
        found = [finding.seen for finding in misplaced(placement)]
        yield from ("", "Where memory is")
        for seen in found or [f"where it should be, of {_looked_at(placement.state)}"]:
            yield from wrapped("  ", seen)


def as_dict(placement: Placement) -> dict[str, Any]:
    """For JSON. What is not known is ``null``, or ``{"reason"}`` where there is a reason."""
    state = placement.state
    return {
        "seconds": state.seconds,
        "nodes": [
            {
                "node": node,
                "allocated": asdict(drift.window),
                "remote": _plain(drift.remote.now),
                "usual": _plain(drift.remote.usual),
                "drift": _plain(drift.remote.change),
                "missed": _plain(drift.missed.now),
                "usually_missed": _plain(drift.missed.usual),
            }
            for node, drift in state.drift.items()
        ],
        "processes": [_process_as_dict(each) for each in placement.targets],
        "segments": [_segment_as_dict(each) for each in placement.segments],
        "accelerators": {
            address: {"node": _plain(each.node), "behind": each.behind}
            for address, each in state.accelerators.items()
        },
        "more_segments": state.more_segments,
        "findings": [asdict(finding) for finding in misplaced(placement)],
    }


def _opened(seen: TargetMemory) -> frozenset[str]:
    """Accelerators, by address."""
    return value_of(seen.accelerators) or frozenset()


def _looked_at(state: MemoryState) -> str:
    processes = f"{len(state.targets):,} process{'' if len(state.targets) == 1 else 'es'}"
    return f"{processes}, {count(len(state.segments), 'shared segment')}"


def _nodes(counts: Fact[object], drift: Mapping[int, Drift]) -> Iterator[str]:
    if isinstance(counts, Unknown):
        yield from wrapped("allocations: ", counts.reason)
        return
    titles = "NODE", "ALLOCATED", "REMOTE", "USUAL", "DRIFT", "FOREIGN", "USUAL", "DRIFT"
    yield _NODES.format(*titles)
    for node, each in drift.items():
        served = each.window.local + each.window.other
        yield _NODES.format(node, compact(served), *_trend(each.remote), *_trend(each.missed))


def _trend(trend: Trend) -> tuple[str, str, str]:
    return _percent(trend.now), _percent(trend.usual), _percent(trend.change, sign="+")


def _processes(targets: tuple[TargetVerdict, ...]) -> Iterator[str]:
    titles = "PROCESS", "PID", "RAN ON NODE", "MEMORY ON NODE", "MISMATCH", "LOOK TOOK"
    yield _PROCESSES.format(*titles)
    for each in sorted(targets, key=lambda each: -(value_of(each.mismatch) or 0.0))[:_ROWS]:
        target = each.seen.target
        mismatch = value_of(each.mismatch)
        yield _PROCESSES.format(
            clipped(target.name, 16),
            target.pid,
            in_words(shares(each.seen.runs), "") or "nowhere",
            _pages(each.pages),
            "-" if mismatch is None else f"{mismatch:.2f}",
            duration(each.seen.cost_seconds),
        )
        yield from wrapped("  ", "; ".join(_bindings(each)))
    if len(targets) > _ROWS:
        yield f"and {len(targets) - _ROWS} more"


def _bindings(each: TargetVerdict) -> Iterator[str]:
    """Of the most frequent kinds of its threads; before them why its memory is not known."""
    if isinstance(each.pages, Unknown):
        yield each.pages.reason
    for placed, threads in (value_of(each.seen.pinning) or ())[:_KINDS]:
        policy = placed.policy.value if isinstance(placed.policy, Known) else "unknown"
        on, of = format_cpus(placed.allowed.cpus), format_cpus(placed.allowed.nodes)
        yield f"{count(threads, 'thread')} on CPUs {on}, policy {policy} of nodes {of}"


def _segments(segments: tuple[SegmentVerdict, ...]) -> Iterator[str]:
    yield _SEGMENTS.format("SHARED SEGMENT", "MIB TOUCHED", "ON NODE", "ERROR", "USERS", "VERDICT")
    for each in segments[:_ROWS]:
        pages = each.segment.pages
        yield _SEGMENTS.format(
            clipped(each.name, 24),
            f"{_mib(pages.total * PAGE)} of {_mib(each.segment.bytes)}",
            _pages(Known(pages)),
            f"{100 * pages.error:.1f} %" if pages.error else "exact",
            len(each.segment.pids),
            each.verdict,
        )
        if isinstance(each.expected, Known):
            nodes = format_cpus(each.expected.value)
            yield from wrapped("  ", f"expected on node {nodes}: {each.expected.source}")
        else:
            yield from wrapped("  ", f"expected nowhere: {each.expected.reason}")
        if isinstance(each.first_touch, Known):
            yield from wrapped(
                "  ", f"touched first by {touchers_in_words(each.first_touch.value)}"
            )
    for reason, names in _first_touch_unknown(segments).items():
        yield from wrapped("", f"who touched {names} first is not known: {reason}")
    if len(segments) > _ROWS:
        yield f"and {len(segments) - _ROWS} more"


def _first_touch_unknown(segments: tuple[SegmentVerdict, ...]) -> dict[str, str]:
    """Names of segments by the reason; of one reason for all no names."""
    reasons: dict[str, list[str]] = {}
    for each in segments:
        if isinstance(each.first_touch, Unknown):
            reasons.setdefault(each.first_touch.reason, []).append(each.name)
    return {
        reason: "them" if len(names) == len(segments) else ", ".join(dict.fromkeys(names))
        for reason, names in reasons.items()
    }


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f}"


def _pages(pages: Fact[Pages]) -> str:
    return "unknown" if isinstance(pages, Unknown) else in_words(pages.value.shares, "") or "none"


def _percent(fact: Fact[float], sign: str = "") -> str:
    return "-" if isinstance(fact, Unknown) else f"{100 * fact.value:{sign}.1f} %"


def _process_as_dict(each: TargetVerdict) -> dict[str, Any]:
    target, pinning = each.seen.target, value_of(each.seen.pinning) or ()
    return {
        "pid": target.pid,
        "name": target.name,
        "tenant": target.tenant,
        "ran_seconds": each.seen.runs,
        "pages": _pages_as_dict(each.pages),
        "mismatch": _plain(each.mismatch),
        "threads": [
            {
                "count": threads,
                "cpus": format_cpus(placed.allowed.cpus),
                "nodes": format_cpus(placed.allowed.nodes),
                "policy": _plain(placed.policy),
            }
            for placed, threads in pinning
        ],
        "accelerators": sorted(_opened(each.seen)),
        "locked_bytes": _plain(each.locked_bytes),
        "look_seconds": each.seen.cost_seconds,
    }


def _segment_as_dict(each: SegmentVerdict) -> dict[str, Any]:
    return {
        "name": each.name,
        "path": visible(each.segment.path.encode(), 4096),
        "bytes": each.segment.bytes,
        "pids": each.segment.pids,
        "ran_seconds": each.runs,
        "pages": _pages_as_dict(Known(each.segment.pages)),
        "policy": _plain(each.segment.policy),
        "expected": _expected_as_dict(each.expected),
        "verdict": each.verdict,
        "first_touch": _first_touch_as_dict(each.first_touch),
    }


def _expected_as_dict(expected: Fact[frozenset[int]]) -> dict[str, str]:
    if isinstance(expected, Unknown):
        return {"reason": expected.reason}
    return {"nodes": format_cpus(expected.value), "source": expected.source}


def _first_touch_as_dict(touch: Fact[FirstTouch]) -> dict[str, Any]:
    if isinstance(touch, Unknown):
        return {"reason": touch.reason}
    by = [asdict(each) | {"name": visible(each.name.encode())} for each in touch.value.by[:_ROWS]]
    return {"pages": touch.value.pages, "source": touch.source, "by": by}


def _pages_as_dict(pages: Fact[Pages]) -> dict[str, Any]:
    return {"reason": pages.reason} if isinstance(pages, Unknown) else asdict(pages.value)


def _plain(fact: Fact[Any]) -> Any:
    return {"reason": fact.reason} if isinstance(fact, Unknown) else fact.value
