"""
The workload's own account of its steps, kept without any help from the tracer.

What the tracer says about this workload can be held against it.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, NamedTuple

import numpy as np

KEPT = 300_000
"""Rows in an account, the latest: some minutes of the default run, at most 100 MB."""


class Timed(NamedTuple):
    """One step, one stage inside a step, or one request's wait in the queue."""

    step: str
    tid: int
    begin_ns: int
    """CLOCK_MONOTONIC, as the end."""

    end_ns: int
    tenants: Mapping[str, int]
    """Requests per tenant. Empty for a stage, which serves whom its step serves."""


class Account:
    """What the thread that made it measured."""

    def __init__(self) -> None:
        self.rows: deque[Timed] = deque(maxlen=KEPT)
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


def write(rows: Iterable[Timed], file: IO[str]) -> None:
    """A line of JSON for each row, so that accounts can be joined."""
    for row in rows:
        file.write(json.dumps(row._asdict()) + "\n")


def read(file: IO[str]) -> list[Timed]:
    return [Timed(**json.loads(line)) for line in file]


@dataclass(frozen=True, slots=True)
class Summary:
    """Steps of one kind. Quantiles are values that occurred, never between two of them."""

    step: str
    tenant: str | None
    """None for all tenants together. A step that served two counts for either of them."""

    count: int
    seconds: float
    """What they are spread over: from the first begin to the last end of this kind."""

    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float


def summarise(rows: Sequence[Timed]) -> list[Summary]:
    """By step kind, in order of appearance; first all tenants together, then each of them."""
    kinds: dict[str, list[Timed]] = defaultdict(list)
    for row in rows:
        kinds[row.step].append(row)
    return [summary for kind in kinds.values() for summary in _of_kind(kind)]


def _of_kind(rows: Sequence[Timed]) -> Iterator[Summary]:
    seconds = (max(row.end_ns for row in rows) - min(row.begin_ns for row in rows)) / 1e9
    tenants = sorted({tenant for row in rows for tenant in row.tenants})
    for tenant in (None, *tenants):
        ms = [
            (row.end_ns - row.begin_ns) / 1e6
            for row in rows
            if tenant is None or tenant in row.tenants
        ]
        quantiles = np.quantile(ms, [0.5, 0.99, 0.999, 1], method="inverted_cdf")
        yield Summary(rows[0].step, tenant, len(ms), seconds, *quantiles.tolist())


def table(summaries: Sequence[Summary]) -> str:
    head = ("step", "tenant", "count", "per s", "p50 ms", "p99 ms", "p999 ms", "max ms")
    lines = ["{:8} {:12} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}".format(*head)]
    lines += [
        f"{s.step:8} {s.tenant or 'all':12} {s.count:8d} {s.count / s.seconds:8.1f} "
        f"{s.p50_ms:9.3f} {s.p99_ms:9.3f} {s.p999_ms:9.3f} {s.max_ms:9.3f}"
        for s in summaries
    ]
    return "\n".join(lines)
