"""Totals as metric families, ready for an exporter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tracer import catalog
from tracer.catalog import CAUSES, DESCHEDULES
from tracer.ledger.counts import families as families_of_counts
from tracer.ledger.histogram import BUCKETS, EDGES_SECONDS, coarsen
from tracer.ledger.profile import Profile
from tracer.ledger.totals import Totals
from tracer.model import Exemplar, Family, Histogram

Rows = dict[Sequence[str], float | Histogram]


def families(totals: Totals, now_ns: int, unix_seconds: float) -> Iterator[Family]:
    """
    Everything that the totals tell. A cause that cannot be told here has no row.

    :param unix_seconds: the wall clock's time when the monotonic clock showed ``now_ns``
    """
    profile = totals.profile
    rows = {totals.labels_of(row): row for row in profile.rows()}
    cannot_tell = totals.cannot_tell
    yield Family(
        catalog.STEP_ELAPSED,
        dict(zip(rows, _histograms(profile), strict=True)),
        EDGES_SECONDS,
        _exemplars(totals, now_ns, unix_seconds),
    )
    yield Family(
        catalog.STEP_SECONDS,
        {
            (*labels, cause.name): float(totals.seconds[row, at])
            for labels, row in rows.items()
            for at, cause in enumerate(CAUSES)
            if cause.name not in cannot_tell
        },
    )
    yield Family(
        catalog.STEP_IS_STAGE,
        {labels: float(totals.is_stage[row]) for labels, row in rows.items()},
    )
    yield Family(
        catalog.HELPER_WAIT,
        {labels: float(totals.helper_seconds[row]) for labels, row in rows.items()},
    )
    yield from families_of_counts(totals)
    yield _ratio(totals, totals.window.profile(now_ns))
    yield Family(catalog.BLAME, dict(totals.blame.seconds(totals.tenants.names)))
    yield Family(
        catalog.QUEUE_WAIT,
        {
            (totals.tenants.names[row],): waits
            for row, waits in zip(
                totals.queue_waits.rows(), _histograms(totals.queue_waits), strict=True
            )
        },
        EDGES_SECONDS,
    )
    yield from _deschedules(totals, now_ns, unix_seconds)
    if "stall" not in totals.cannot_tell:
        yield Family(catalog.STALL, totals.stalls.histograms(EDGES_SECONDS), EDGES_SECONDS)


def _histograms(profile: Profile) -> Iterator[Histogram]:
    """Of each row."""
    seconds = profile.sums().sum(axis=1) / 1e9
    return map(Histogram, profile.coarsened(EDGES_SECONDS), seconds.tolist())


def _ratio(totals: Totals, window: Profile) -> Family:
    ratios = window.quantiles(0.999) / window.quantiles(0.5)
    labels = map(totals.labels_of, window.rows())
    return Family(catalog.STEP_RATIO, dict(zip(labels, ratios.tolist(), strict=True)))


def _deschedules(totals: Totals, now_ns: int, unix_seconds: float) -> Iterator[Family]:
    counts = coarsen(totals.deschedules[:, :, :BUCKETS], EDGES_SECONDS)
    seconds = totals.deschedules[:, :, BUCKETS] / 1e9
    cannot_tell = totals.cannot_tell
    by_cause: Rows = {
        (tenant, cause): Histogram(counts[row, at], float(seconds[row, at]))
        for row, tenant in enumerate(totals.descheduled)
        for at, cause in enumerate(DESCHEDULES)
        if cause not in cannot_tell
    }
    exemplars = totals.longest.exemplars(totals.names.tenants, now_ns, unix_seconds)
    yield Family(catalog.DESCHEDULE, by_cause, EDGES_SECONDS, exemplars)
    window = totals.deschedule_window.profile(now_ns)
    tenants = [totals.descheduled[row] for row in window.rows()]
    p999 = dict(zip(tenants, (window.quantiles(0.999) / 1e9).tolist(), strict=True))
    count = dict(zip(tenants, window.counts().tolist(), strict=True))
    yield Family(catalog.DESCHEDULE_P999, {(tenant,): p999[tenant] for tenant in p999})
    yield Family(
        catalog.DESCHEDULE_WINDOW_COUNT,
        {(tenant,): float(count.get(tenant, 0)) for tenant in totals.descheduled},
    )


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
