"""The summary of a running agent's totals, or of totals fed with a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tracer.catalog import CAUSES, EVENTS
from tracer.ledger.histogram import bucket_of_quantile, bucket_of_rank, quantile
from tracer.ledger.summary import (
    BlameRow,
    ByCause,
    ByEvent,
    LongestWait,
    RecentRow,
    SlowStep,
    StepRow,
    Summary,
)
from tracer.ledger.totals import Totals
from tracer.model import Aggressor, Steps, take_rows
from tracer.targets.text import visible

_MEDIAN_BAND = 0.4, 0.6


def summarise(totals: Totals, lost: Mapping[str, int], now_ns: int) -> Summary:
    """``lost`` is what all parts together could not count, by reason."""
    profile = totals.profile
    rows = {row: _step_row(totals, row, *profile.row(row)) for row in profile.rows()}
    blame = [
        BlameRow(victim=victim, aggressor=aggressor, cause=cause, seconds=seconds)
        for (victim, aggressor, cause), seconds in totals.blame.seconds(totals.tenants.names)
    ]
    slowest = totals.slowest.steps(now_ns)
    return Summary(
        seconds=(now_ns - totals.started_ns) / 1e9,
        window_seconds=totals.window_seconds,
        steps=totals.steps,
        rows=tuple(sorted(rows.values(), key=lambda row: -sum(row.seconds.values()))),
        recent=tuple(sorted(_recent(totals, now_ns), key=lambda row: -sum(row.seconds.values()))),
        blame=tuple(sorted(blame, key=lambda row: -row.seconds)),
        slowest=() if slowest is None else _slow_steps(totals, slowest, rows),
        stalls=totals.stalls.rows(),
        longest_stalls=tuple(totals.stalls.longest),
        outside={
            name: _by_cause(totals.outside_seconds[number])
            for number, name in enumerate(totals.tenants.names)
            if totals.outside_seconds[number].any()
        },
        lost={reason: n for reason, n in lost.items() if n},
        cannot_tell=dict(totals.cannot_tell),
        unix_offset_ns=totals.unix_offset_ns,
        bare_metal=totals.bare_metal,
    )


def _by_cause(seconds: NDArray[np.float64]) -> ByCause:
    return {cause.name: float(s) for cause, s in zip(CAUSES, seconds, strict=True)}


def _by_event(counts: NDArray[np.floating] | NDArray[np.integer]) -> ByEvent:
    return {event.name: float(n) for event, n in zip(EVENTS, counts, strict=True)}


def _in_a_median_step(row: StepRow) -> ByEvent:
    """By time: events and seconds are both the tenant's share."""
    steps = sum(row.seconds.values()) / row.p50
    return {name: n / steps for name, n in row.events.items()}


def _step_row(
    totals: Totals, row: int, counts: NDArray[np.int64], ns: NDArray[np.int64]
) -> StepRow:
    """``counts`` (BUCKETS,) and summed ledgers (BUCKETS, c) of the row, by wall time."""
    tenant, step = totals.labels_of(row)
    n = int(counts.sum())
    low, high = (int(bucket_of_quantile(counts, q)) for q in _MEDIAN_BAND)
    beyond = int(bucket_of_rank(counts, 99 * n // 100 + 1))
    middle, tail = slice(low, high + 1), slice(beyond, None)
    p50, p99, p999 = (float(quantile(counts, q)) / 1e9 for q in (0.5, 0.99, 0.999))
    return StepRow(
        tenant=tenant,
        step=step,
        is_stage=bool(totals.is_stage[row]),
        count=n,
        p50=p50,
        p99=p99,
        p999=p999,
        seconds=_by_cause(totals.seconds[row]),
        typical=_by_cause(ns[middle].sum(axis=0) / counts[middle].sum() / 1e9),
        tail=_by_cause(ns[tail].sum(axis=0) / counts[tail].sum() / 1e9),
        tail_count=int(counts[tail].sum()),
        events=_by_event(totals.events[row]),
    )


def _recent(totals: Totals, now_ns: int) -> Iterator[RecentRow]:
    times, ledgers = totals.window.profile(now_ns), totals.window_ledgers.profile(now_ns)
    p50, p99, p999 = (times.quantiles(q) / 1e9 for q in (0.5, 0.99, 0.999))
    counts, seconds = times.counts(), ledgers.sums() / 1e9
    for at, row in enumerate(times.rows()):
        tenant, step = totals.labels_of(row)
        yield RecentRow(
            tenant=tenant,
            step=step,
            is_stage=bool(totals.is_stage[row]),
            count=int(counts[at]),
            p50=float(p50[at]),
            p99=float(p99[at]),
            p999=float(p999[at]),
            seconds=_by_cause(seconds[at]),
        )


def slow_steps(totals: Totals, steps: Steps) -> tuple[SlowStep, ...]:
    """In the order given, against all that the totals have of their kinds."""
    profile = totals.profile
    rows = set(totals.largest_rows(steps))
    return _slow_steps(
        totals, steps, {row: _step_row(totals, row, *profile.row(row)) for row in rows}
    )


def _slow_steps(totals: Totals, steps: Steps, rows: Mapping[int, StepRow]) -> tuple[SlowStep, ...]:
    peers = [rows[row] for row in totals.largest_rows(steps)]
    return tuple(
        SlowStep(
            number=int(steps.number[i]),
            parent=int(steps.parent[i]),
            step=peer.step,
            tenant=peer.tenant,
            shares=_shares(totals, steps, i),
            target=int(steps.target[i]),
            tid=int(steps.tid[i]),
            end_ns=int(steps.end_ns[i]),
            elapsed=float(steps.elapsed_ns[i]) / 1e9,
            seconds=_by_cause(steps.ns[i] / 1e9),
            median=peer.p50,
            typical=peer.typical,
            switches=int(steps.switches[i]),
            involuntary=int(steps.involuntary[i]),
            migrations=int(steps.migrations[i]),
            worst=_worst(steps, i),
            aggressors=_aggressors(totals, steps, i),
            blame_rest=float(steps.blame_rest_ns[i]) / 1e9,
            helper_wait=float(steps.helper_wait_ns[i]) / 1e9,
            helper_worst=float(steps.helper_worst_ns[i]) / 1e9,
            events=_by_event(steps.events[i]),
            usual_events=_in_a_median_step(peer),
        )
        for i, peer in enumerate(peers)
    )


def _shares(totals: Totals, steps: Steps, i: int) -> Mapping[str, float]:
    served = steps.tenant[i] >= 0
    numbers = totals.tenants.numbers(steps.tenant[i][served], totals.names.tenants)
    shares: Counter[str] = Counter()  # several of its tenants may all be ``other``
    for number, share in zip(numbers, steps.share[i][served].tolist(), strict=True):
        shares[totals.tenants.names[number]] += share
    return dict(shares)


def _worst(steps: Steps, i: int) -> LongestWait | None:
    wait = steps.worst[i]
    if not wait["ns"]:
        return None
    return LongestWait(
        cause=CAUSES[int(wait["cause"])].name,
        seconds=int(wait["ns"]) / 1e9,
        after=(int(wait["at_ns"]) - int(steps.begin_ns[i])) / 1e9,
        comm=visible(wait["by"]["comm"]),
        tid=int(wait["by"]["tid"]),
    )


def _aggressors(totals: Totals, steps: Steps, i: int) -> tuple[Aggressor, ...]:
    of_step = steps.aggressors[i]
    known = take_rows(of_step, of_step["ns"] > 0)
    names = totals.blame.name_runners(known["who"])
    return tuple(
        Aggressor(
            name=name,
            pid=int(who["tgid"]),
            tid=int(who["tid"]),
            comm=visible(who["comm"]),
            seconds=float(ns) / 1e9,
        )
        for name, who, ns in zip(names, known["who"], known["ns"], strict=True)
    )
