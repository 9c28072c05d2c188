"""A node with plausible values in every metric of the catalog."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import product

import numpy as np

from tracer.catalog import (
    CAUSES,
    DESCHEDULE,
    DESCHEDULES,
    EVENTS,
    LOSSES,
    METRICS,
    SCOPES,
    STEP_IS_STAGE,
    Metric,
    Type,
)
from tracer.model import Exemplar, Family, Histogram

EDGES = np.geomspace(1e-5, 1.28, 18)
PER_SECOND = np.rint(np.geomspace(6000, 6, len(EDGES) + 1)) / 60
"""Observations in each bucket of each histogram."""

LABEL_VALUES: dict[str, Sequence[str]] = {
    "tenant": ["chat", "batch"],
    "step": ["decode", "prefill"],
    "cause": [cause.name for cause in CAUSES],
    "victim": ["chat", "batch"],
    "aggressor": ["batch", "grpc-worker"],
    "kind": sorted({"virtual", *(event.kind for event in EVENTS)}),
    "cpu": ["0", "1"],
    "kernel": ["6.1.0"],
    "cpus": ["8"],
    "numa_nodes": ["1"],
    "version": ["0.1.0"],
    "capability": ["steal", "quota"],
    "source": ["rq"],
    "scope": list(SCOPES),
    "reason": [loss.name for loss in LOSSES],
    "node": ["0", "1"],
    "counter": ["local", "other", "hit", "foreign"],
    "segment": ["private", "/dev/shm/queue"],
    "hook": ["sched_switch", "sched_wakeup"],
}


def node(seconds: float) -> list[Family]:
    """Every metric of the catalog, as of a node that has been up for so long."""
    return [_family(metric, seconds) for metric in METRICS]


def _family(metric: Metric, seconds: float) -> Family:
    rows = list(product(*(LABEL_VALUES[label] for label in metric.labels)))
    if metric is DESCHEDULE:
        rows = [row for row in rows if row[1] in DESCHEDULES]
    if metric is STEP_IS_STAGE:
        return Family(metric, {row: float(row[1] == "prefill") for row in rows})
    if metric.type is not Type.HISTOGRAM:
        each = 1.0 if metric.type is Type.GAUGE else 0.5 * seconds
        return Family(metric, dict.fromkeys(rows, each))
    counts = np.rint(seconds * PER_SECOND).astype(np.int64)
    exemplar = Exemplar(0.1, {"step": "4711", "aggressor": "grpc-worker"}, time.time())
    return Family(
        metric,
        dict.fromkeys(rows, Histogram(counts, float(counts[:-1] @ EDGES))),
        EDGES,
        {row: [exemplar] for row in rows},
    )
