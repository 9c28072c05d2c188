"""
What a fleet observed before and after, from the metrics that its agents export.

The same samples as from recordings, with three differences. Buckets are those of exported
histograms, two an octave, so a quantile is only known to be in its bucket. A step that served
several tenants counts for each. And a window is as long as it takes for several scrapes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
import numpy as np
from numpy.typing import NDArray

from tracer import catalog
from tracer.catalog import CAUSES, Metric
from tracer.errors import UnavailableError, UsageError
from tracer.judge.migration.criteria import FLEET_DEFAULTS, Criteria
from tracer.judge.migration.distribution import Buckets, Distribution
from tracer.judge.migration.sample import Pair, Sample
from tracer.judge.migration.verdict import Verdict, judge
from tracer.judge.words import count
from tracer.ledger.books import CAUSE_AT
from tracer.ledger.histogram import EDGES_SECONDS
from tracer.record.meta import Machine, MachineKind, Meta
from tracer.record.prometheus import Prometheus, Series

MOST_WINDOWS = 10_000
"""Prometheus refuses to tell more than 11,000 values of a series."""

_EXPORTED = Buckets(np.r_[0.0, EDGES_SECONDS], np.r_[EDGES_SECONDS, np.inf], coarse=True)
_MIDDLE = np.r_[_EXPORTED.lower[:-1] + _EXPORTED.upper[:-1], 3 * EDGES_SECONDS[-1]] / 2
_BUCKET_OF_LE = {round(1e9 * edge): at for at, edge in enumerate(EDGES_SECONDS)}


@dataclass(frozen=True, slots=True)
class Period:
    """Whole seconds since 1970, in windows."""

    start: int
    end: int
    window: int

    @classmethod
    def parse(cls, text: str, window: int) -> Period:
        """``START/END``, each an ISO 8601 time, UTC where it names no zone, or seconds."""
        parts = text.split("/")
        try:
            start, end = (_time(part) for part in parts)
        except ValueError as e:
            raise UsageError(
                f"{text!r} is no range of time; give START/END, such as "
                "2026-11-01T08:00/2026-11-01T12:00"
            ) from e
        windows = (end - start) // window
        if not 1 <= windows <= MOST_WINDOWS:
            raise UsageError(
                f"{text!r} has {max(windows, 0):,} windows of {window} s, must be 1 to "
                f"{MOST_WINDOWS:,}; give a longer range, or another --window"
            )
        return cls(start, start + windows * window, window)

    @property
    def ends(self) -> range:
        """Of the windows."""
        return range(self.start + self.window, self.end + 1, self.window)


def compare(
    server: Prometheus,
    selectors: tuple[str, str],
    periods: tuple[Period, Period],
    criteria: Criteria,
) -> Verdict:
    """
    :param selectors: of the agents before and after, as PromQL has them: ``cluster="a"``

    Raises UnavailableError where the server does not tell.
    """
    was, now = (
        _Fleet(server, selector, period).sample()
        for selector, period in zip(selectors, periods, strict=True)
    )
    given = {criterion.figure for criterion in criteria.criteria}
    kept = [c for c in FLEET_DEFAULTS if criteria.defaults and c.figure not in given]
    wanted = msgspec.structs.replace(criteria, criteria=(*kept, *criteria.criteria), defaults=False)
    return judge(was, now, wanted, [_REMARK])


_REMARK = (
    "Quantiles are known to lie between two edges of the exported buckets, two an octave; "
    "recordings tell them to 1.6 %."
)


@dataclass(frozen=True, slots=True)
class _Fleet:
    """Agents that a selector selects, in a period."""

    server: Prometheus
    selector: str
    period: Period

    def sample(self) -> Sample:
        at = self._windows()
        elapsed = self._distributions(catalog.STEP_ELAPSED, ("tenant", "step"), at)
        stages = self._stages()
        causes, told = np.zeros((len(at), len(CAUSES))), set[str]()
        seconds = self._increase(catalog.STEP_SECONDS.name, ("cause",), at, unless=self._is_stage)
        for (cause,), values in seconds.items():
            if cause in CAUSE_AT:
                causes[:, CAUSE_AT[cause]] = values
                told.add(cause)
        steps = [of.by_window for pair, of in elapsed.items() if pair not in stages]
        return Sample(
            meta=self._meta(told),
            seconds=np.full(len(at), float(self.period.window)),
            steps=np.sum([np.zeros(len(at)), *steps], axis=0),
            elapsed={(tenant, step): of for (tenant, step), of in elapsed.items()},
            stages=stages,
            deschedules=self._by_tenant(catalog.DESCHEDULE, at),
            queue_waits=self._by_tenant(catalog.QUEUE_WAIT, at),
            causes=causes,
            lost={
                reason: round(values.sum())
                for (reason,), values in self._increase(catalog.LOST.name, ("reason",), at).items()
                if values.sum() >= 0.5
            },
            window_seconds=self.period.window,
            missing=len(self.period.ends) - len(at),
        )

    def _windows(self) -> dict[int, int]:
        """Those in which an agent was scraped twice: when each ended -> its number."""
        alive = f"count(increase({catalog.SELF_CPU.name}{self._selected}[{self.period.window}s]))"
        ends = sorted(end for series in self._every_window(alive) for end in series.values)
        if not ends:
            raise UnavailableError(
                f"{self._selected}: no agent was scraped twice in {self.period.window} s between "
                f"{_utc(self.period.start)} and {_utc(self.period.end)}; give another selector, "
                "range or --window"
            )
        return {end: number for number, end in enumerate(ends)}

    @property
    def _is_stage(self) -> str:
        """Of which tenants and kinds, in a window."""
        name = f"{catalog.STEP_IS_STAGE.name}{self._selected}"
        return f"max by (tenant, step) (max_over_time({name}[{self.period.window}s])) == 1"

    def _stages(self) -> set[Pair]:
        return {
            (series.labels.get("tenant", ""), series.labels.get("step", ""))
            for series in self._every_window(self._is_stage)
        }

    def _meta(self, told: Collection[str]) -> Meta:
        """What all agents of the period have in common."""
        agents = [each.labels for each in self._all(catalog.MACHINE.name + self._selected)]
        without = self._selected.replace("{", '{source="none",', 1)
        unavailable = {
            each.labels.get("capability", "")
            for each in self._all(catalog.PROBE_AVAILABLE.name + without)
        }

        def each(label: str) -> list[str]:
            return sorted({agent.get(label, "") for agent in agents})

        kinds, nodes = each("kind"), each("numa_nodes")
        common = kinds[0] if len(kinds) == 1 else ""
        return Meta(
            agent_version=" and ".join(each("version")),
            machine=Machine(
                kind=MachineKind(common) if common in list(MachineKind) else MachineKind.UNKNOWN,
                kernel=" and ".join(each("kernel")),
                cpu_model=count(len(agents), "machine"),
                cpus=sum(int(agent["cpus"]) for agent in agents if agent.get("cpus", "").isdigit()),
                numa_nodes=int(nodes[0]) if len(nodes) == 1 and nodes[0].isdigit() else None,
            ),
            configuration="",
            capabilities=(),
            cannot_tell={
                cause.name: "an agent cannot tell it"
                for cause in CAUSES
                if cause.name not in told or cause.name in unavailable
            },
            window_seconds=min(self.period.window, 3600),
            max_tenants=1000,
            started_ns=0,
            started_unix_ns=self.period.start * 1_000_000_000,
        )

    def _by_tenant(self, metric: Metric, at: Mapping[int, int]) -> dict[str, Distribution]:
        found = self._distributions(metric, ("tenant",), at)
        return {tenant: distribution for (tenant,), distribution in found.items()}

    def _distributions(
        self, metric: Metric, by: tuple[str, ...], at: Mapping[int, int]
    ) -> dict[tuple[str, ...], Distribution]:
        """Of those with any observation."""
        seconds = self._increase(f"{metric.name}_sum", by, at)
        tables: dict[tuple[str, ...], NDArray[np.float64]] = defaultdict(
            lambda: np.zeros((len(at), len(_MIDDLE)))
        )
        for (*key, le), values in self._increase(f"{metric.name}_bucket", (*by, "le"), at).items():
            tables[tuple(key)][:, self._bucket(metric, le)] = values
        found = {key: _distribution(table, seconds[key]) for key, table in tables.items()}
        return {key: of for key, of in found.items() if of.observations}

    def _bucket(self, metric: Metric, le: str) -> int:
        """Which one has this upper bound."""
        edge = float(le)
        bucket = len(_BUCKET_OF_LE) if np.isinf(edge) else _BUCKET_OF_LE.get(round(1e9 * edge))
        if bucket is None:
            raise UsageError(f"{metric.name}: has a bucket up to {le} s, as no tailtrace exports")
        return bucket

    def _increase(
        self, name: str, by: tuple[str, ...], at: Mapping[int, int], unless: str = ""
    ) -> dict[tuple[str, ...], NDArray[np.float64]]:
        """
        Of all agents together in each window, by these labels.

        :param unless: a query that tells tenants and kinds of steps to leave out
        """
        gained = f"increase({name}{self._selected}[{self.period.window}s])"
        if unless:
            gained += f" unless on (tenant, step) ({unless})"
        found: dict[tuple[str, ...], NDArray[np.float64]] = defaultdict(lambda: np.zeros(len(at)))
        for series in self._every_window(f"sum by ({', '.join(by)}) ({gained})"):
            values = found[tuple(series.labels.get(label, "") for label in by)]
            for end, value in series.values.items():
                if end in at:
                    values[at[end]] += value
        return found

    def _every_window(self, query: str) -> Sequence[Series]:
        ends = self.period.ends
        return self.server.query_range(query, ends[0], ends[-1], self.period.window)

    def _all(self, selected: str) -> Sequence[Series]:
        """What there was at any time of the period."""
        end, seconds = self.period.end, self.period.end - self.period.start
        return self.server.query_range(f"last_over_time({selected}[{seconds}s])", end, end, 1)

    @property
    def _selected(self) -> str:
        return "{" + self.selector.strip().removeprefix("{").removesuffix("}") + "}"


def _distribution(up_to: NDArray[np.float64], seconds: NDArray[np.float64]) -> Distribution:
    """
    :param up_to: (windows, buckets) observations up to the upper bound of each bucket
    :param seconds: (windows,) what they add up to
    """
    counts = np.diff(np.rint(up_to).astype(np.int64), axis=1, prepend=0).clip(0)
    guessed = counts * _MIDDLE
    whole = guessed.sum(axis=1)
    scale = np.divide(seconds, whole, out=np.zeros_like(seconds), where=whole > 0)
    window, bucket = np.nonzero(counts)
    cells = window, bucket
    return Distribution(
        windows=len(counts),
        window=window,
        bucket=bucket,
        count=counts[cells],
        seconds=(guessed * scale[:, None])[cells],
        buckets=_EXPORTED,
    )


def _time(text: str) -> int:
    """Raises ValueError."""
    if re.fullmatch(r"\d{1,12}", text):
        return int(text)
    time = datetime.fromisoformat(text)
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())


def _utc(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%F %T UTC")
