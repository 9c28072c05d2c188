"""Expressions over the catalog's metrics: the few shapes that rules and panels are made of."""

from __future__ import annotations

from collections.abc import Iterable

from tracer.catalog import Metric, Type


def selector(metric: Metric, part: str = "", matchers: str = "") -> str:
    """The metric's series; of a histogram ``part`` ``bucket``, ``count`` or ``sum``."""
    assert bool(part) == (metric.type is Type.HISTOGRAM), metric.name
    name = f"{metric.name}_{part}" if part else metric.name
    return f"{name}{{{matchers}}}" if matchers else name


def rate(metric: Metric, window: str, part: str = "", matchers: str = "") -> str:
    return f"rate({selector(metric, part, matchers)}[{window}])"


def quantile(
    q: float, histogram: Metric, window: str, matchers: str = "", without: str = ""
) -> str:
    """A quantile for each series that is left after ``without``, a list of labels, is summed up."""
    buckets = rate(histogram, window, "bucket", matchers)
    if without:
        buckets = f"sum without ({without}) ({buckets})"
    return f"histogram_quantile({q}, {buckets})"


def any_of(names: Iterable[str]) -> str:
    """The names as a regular expression."""
    return "|".join(names)
