"""
The workload's own account of its steps, kept without any help from the tracer.

What the tracer says about this workload can be held against it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import IO

import numpy as np


@dataclass(frozen=True, slots=True)
class Timed:
    """One step, one stage inside a step, or one request's wait in the queue."""

    step: str
    tid: int
    begin_ns: int
    """CLOCK_MONOTONIC, as the end."""

    end_ns: int
    tenants: Mapping[str, int] = field(default_factory=dict)
    """Requests per tenant. Empty for a stage, which serves whom its step serves."""


class Account:
    """What the thread that made it measured."""

    def __init__(self) -> None:
        self.rows: list[Timed] = []
        self._tid = threading.get_native_id()

    @contextmanager
    def timed(self, step: str, tenants: Mapping[str, int] | None = None) -> Iterator[None]:
        begin_ns = time.monotonic_ns()
        yield
        self.add(step, begin_ns, time.monotonic_ns(), tenants)

    def add(
        self, step: str, begin_ns: int, end_ns: int, tenants: Mapping[str, int] | None = None
    ) -> None:
        self.rows.append(Timed(step, self._tid, begin_ns, end_ns, tenants or {}))


def write(rows: Sequence[Timed], file: IO[str]) -> None:
    """A line of JSON for each row, so that accounts can be joined."""
    for row in rows:
        file.write(json.dumps(asdict(row)) + "\n")


def read(file: IO[str]) -> list[Timed]:
    return [Timed(**json.loads(line)) for line in file]


@dataclass(frozen=True, slots=True)
class Summary:
    """Steps of one kind. Quantiles are values that occurred, never between two of them."""

    step: str
    tenant: str | None
    """None for all tenants together. A step that served two counts for either of them."""

    count: int
    per_second: float
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float


def summarise(rows: Sequence[Timed]) -> list[Summary]:
    """By step kind; for each first all tenants together, then each of them."""
    groups: dict[tuple[str, str | None], list[int]] = {}
    for row in rows:
        for tenant in (None, *row.tenants):
            groups.setdefault((row.step, tenant), []).append(row.end_ns - row.begin_ns)
    seconds = _span_s(rows)
    ordered = sorted(groups, key=lambda key: (key[0], key[1] or ""))
    return [_summary(step, tenant, groups[step, tenant], seconds) for step, tenant in ordered]


def _span_s(rows: Sequence[Timed]) -> float:
    if not rows:
        return 0.0
    return (max(row.end_ns for row in rows) - min(row.begin_ns for row in rows)) / 1e9


def _summary(step: str, tenant: str | None, elapsed_ns: Sequence[int], seconds: float) -> Summary:
    quantiles = np.quantile(elapsed_ns, [0.5, 0.99, 0.999, 1], method="inverted_cdf") / 1e6
    return Summary(step, tenant, len(elapsed_ns), len(elapsed_ns) / seconds, *quantiles.tolist())


def table(summaries: Sequence[Summary]) -> str:
    head = ("step", "tenant", "count", "/s", "p50 ms", "p99 ms", "p999 ms", "max ms")
    lines = ["{:8} {:12} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}".format(*head)]
    lines += [
        f"{s.step:8} {s.tenant or 'all':12} {s.count:8d} {s.per_second:8.1f} "
        f"{s.p50_ms:9.3f} {s.p99_ms:9.3f} {s.p999_ms:9.3f} {s.max_ms:9.3f}"
        for s in summaries
    ]
    return "\n".join(lines)
