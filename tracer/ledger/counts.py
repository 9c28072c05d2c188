"""What is counted besides time, out of totals and back into them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tracer.catalog import EVENTS
from tracer.ledger.totals import MAX_KINDS, Totals
from tracer.model import Family

EVENT_AT = {event.name: at for at, event in enumerate(EVENTS)}

OUTSIDE = ""
"""The step kind of what happened in no step."""

Labels = tuple[str, str, str]
"""Tenant, step kind, event."""


def by_labels(totals: Totals) -> dict[Labels, float]:
    """All that are not 0, each tenant with its share of a step."""
    of_steps = {
        (*totals.labels_of(row), EVENTS[at].name): float(totals.events[row, at])
        for row, at in np.argwhere(totals.events).tolist()
    }
    outside = {
        (totals.tenants.names[tenant], OUTSIDE, EVENTS[at].name): float(n)
        for tenant, at in np.argwhere(totals.outside_events).tolist()
        for n in [totals.outside_events[tenant, at]]
    }
    return of_steps | outside


def add(totals: Totals, labels: Labels, count: float) -> None:
    """What :func:`by_labels` gave before."""
    tenant, kind, event = labels
    if kind == OUTSIDE:
        totals.outside_events[totals.tenants.number(tenant), EVENT_AT[event]] += count
    else:
        totals.events[totals.row(tenant, kind), EVENT_AT[event]] += count


def families(totals: Totals) -> Iterator[Family]:
    """By tenant, in steps and out of them. What is not counted here has no row."""
    by_tenant, cannot_tell = _by_tenant(totals), totals.cannot_tell
    for metric in dict.fromkeys(event.metric for event in EVENTS):
        told = [
            (at, event.kind)
            for at, event in enumerate(EVENTS)
            if event.metric is metric and event.capability not in cannot_tell
        ]
        yield Family(
            metric,
            {
                (tenant, kind): float(by_tenant[number, at])
                for number, tenant in enumerate(totals.tenants.names)
                if number or by_tenant[number].any()
                for at, kind in told
            },
        )


def _by_tenant(totals: Totals) -> NDArray[np.float64]:
    """(tenants, e); stages are in their steps."""
    of_steps = np.where(totals.is_stage[:, None], 0, totals.events)
    tenants = len(totals.outside_events)
    by_tenant: NDArray[np.float64] = of_steps.reshape(tenants, MAX_KINDS + 1, -1).sum(axis=1)
    return by_tenant + totals.outside_events
