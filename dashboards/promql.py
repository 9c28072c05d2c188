"""Expressions over the catalog's metrics: the few shapes that rules and panels are made of."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tracer.catalog import STEP_IS_STAGE, Metric, Type


def selector(metric: Metric, part: str = "", matchers: str = "") -> str:
    """The metric's series; of a histogram ``part`` is ``bucket``, ``count`` or ``sum``."""
    assert bool(part) == (metric.type is Type.HISTOGRAM), metric.name
    name = f"{metric.name}_{part}" if part else metric.name
    return f"{name}{{{matchers}}}" if matchers else name


def rate(metric: Metric, window: str, part: str = "", matchers: str = "", offset: str = "") -> str:
    """Growth in a second; with an offset, as it was so long ago."""
    ago = f" offset {offset}" if offset else ""
    return f"rate({selector(metric, part, matchers)}[{window}]{ago})"


def without_stages(expression: str) -> str:
    """Of series by tenant and step those of whole steps, so that a sum has nothing twice."""
    return f"({expression} unless on (instance, tenant, step) ({STEP_IS_STAGE.name} == 1))"


def quantile(q: float, buckets: str) -> str:
    """A quantile of what a rate of a histogram's buckets, summed or not, counts."""
    return f"histogram_quantile({q}, {buckets})"


def quoted(*names: str) -> str:
    """The names as a string that a regular expression is matched against."""
    return json.dumps("|".join(names))


def top(n: int, expression: str) -> str:
    return f"topk({n}, {expression})"


def sum_by(labels: Iterable[str], expression: str) -> str:
    return f"sum by ({', '.join(labels)}) ({expression})"
