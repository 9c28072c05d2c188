"""Totals as metric families, ready for an exporter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tracer import catalog
from tracer.catalog import CAUSES
from tracer.ledger.histogram import BUCKETS, EDGES_SECONDS, coarsen, quantile
from tracer.ledger.profile import Profile
from tracer.ledger.totals import DESCHEDULES, Totals
from tracer.model import Exemplar, Family, Histogram

Rows = dict[Sequence[str], float | Histogram]


def families(totals: Totals, now_ns: int, unix_seconds: float) -> Iterator[Family]:
    """
    Everything that the totals tell. A cause that cannot be told here has no row.

    :param unix_seconds: the wall clock's time when the monotonic clock showed ``now_ns``
    """
    profile = totals.profile
    rows = {totals.labels_of(row): row for row in profile.rows()}
    yield Family(
        catalog.STEP_ELAPSED,
        {labels: _histogram(*profile.row(row)) for labels, row in rows.items()},
        EDGES_SECONDS,
        _exemplars(totals, now_ns, unix_seconds),
    )
    yield Family(
        catalog.STEP_SECONDS,
        {
            (*labels, cause.name): float(totals.seconds[row, at])
            for labels, row in rows.items()
            for at, cause in enumerate(CAUSES)
            if cause.name not in totals.cannot_tell
        },
    )
    yield Family(
        catalog.HELPER_WAIT,
        {labels: float(totals.helper_seconds[row]) for labels, row in rows.items()},
    )
    yield _ratio(totals, totals.window.profile(now_ns))
    yield Family(catalog.BLAME, dict(totals.blame.seconds(totals.tenants.names)))
    yield Family(
        catalog.QUEUE_WAIT,
        {
            (totals.tenants.names[row],): _histogram(*totals.queue_waits.row(row))
            for row in totals.queue_waits.rows()
        },
        EDGES_SECONDS,
    )
    yield from _deschedules(totals, now_ns)


def _histogram(counts: NDArray[np.int64], ns: NDArray[np.int64]) -> Histogram:
    return Histogram(coarsen(counts, EDGES_SECONDS), float(ns.sum()) / 1e9)


def _ratio(totals: Totals, window: Profile) -> Family:
    counts = {row: window.row(row)[0] for row in window.rows()}
    return Family(
        catalog.STEP_RATIO,
        {
            totals.labels_of(row): float(quantile(of_row, 0.999) / quantile(of_row, 0.5))
            for row, of_row in counts.items()
        },
    )


def _deschedules(totals: Totals, now_ns: int) -> Iterator[Family]:
    by_cause: Rows = {
        (tenant, cause): Histogram(coarsen(cells[:BUCKETS], EDGES_SECONDS), int(cells[-1]) / 1e9)
        for tenant, of_tenant in zip(totals.descheduled, totals.deschedules, strict=True)
        for cause, cells in zip(DESCHEDULES, of_tenant, strict=True)
        if cause not in totals.cannot_tell
    }
    yield Family(catalog.DESCHEDULE, by_cause, EDGES_SECONDS)
    window = totals.deschedule_window.profile(now_ns)
    p999: Rows = {}
    count: Rows = {}
    for at, tenant in enumerate(totals.descheduled):
        of_tenant = window.row(at)[0]
        count[tenant,] = float(of_tenant.sum())
        if of_tenant.any():
            p999[tenant,] = float(quantile(of_tenant, 0.999)) / 1e9
    yield Family(catalog.DESCHEDULE_P999, p999)
    yield Family(catalog.DESCHEDULE_WINDOW_COUNT, count)


def _exemplars(
    totals: Totals, now_ns: int, unix_seconds: float
) -> dict[Sequence[str], Sequence[Exemplar]]:
    """The slowest steps, under the tenant with the largest share."""
    found: dict[Sequence[str], list[Exemplar]] = defaultdict(list)
    steps = totals.slowest.steps(now_ns)
    if steps is None:
        return {}
    for i, row in enumerate(totals.largest_rows(steps)):
        exemplar = Exemplar(
            value=float(steps.elapsed_ns[i]) / 1e9,
            labels={"step_number": str(steps.number[i]), "tid": str(steps.tid[i])},
            unix_seconds=unix_seconds - (now_ns - int(steps.end_ns[i])) / 1e9,
        )
        found[totals.labels_of(row)].append(exemplar)
    return dict(found)
