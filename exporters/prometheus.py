"""
The metrics page, in Prometheus' text format 0.0.4 and in OpenMetrics 1.0.

A page of 200 tenants has some 55,000 lines, and the client library takes 0.3 to 0.5 s to write
them: most of it for names, labels and escapes that are the same in every scrape. So the library
writes each row once, when the row first appears; from then on only its values are filled in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from prometheus_client import core, exposition
from prometheus_client.openmetrics import exposition as openmetrics

from tracer.catalog import Metric, Type
from tracer.model import Exemplar, Family, Histogram

_FAMILIES: dict[
    Type,
    type[core.CounterMetricFamily]
    | type[core.GaugeMetricFamily]
    | type[core.HistogramMetricFamily],
] = {
    Type.COUNTER: core.CounterMetricFamily,
    Type.GAUGE: core.GaugeMetricFamily,
    Type.HISTOGRAM: core.HistogramMetricFamily,
}
_EXEMPLAR_CHARACTERS = 128
"""Of all label names and values of one exemplar: OpenMetrics 1.0, section "Exemplars"."""

_MISSED_INTERVALS = 3
"""Publishing may be late this many intervals before the page counts as stale."""


@dataclass(frozen=True)
class Format:
    """One way to write the page."""

    content_type: str
    encode: Callable[[core.CollectorRegistry], bytes]
    end: str
    exemplars: bool


TEXT = Format(exposition.CONTENT_TYPE_PLAIN_0_0_4, exposition.generate_latest, "", False)
OPENMETRICS = Format(openmetrics.CONTENT_TYPE_LATEST, openmetrics.generate_latest, "# EOF\n", True)


def negotiate(accept: str) -> Format:
    """The format for an ``Accept`` header; text for one that is empty or makes no sense."""
    try:
        _, content_type = exposition.choose_encoder(accept)
    except TypeError:  # the library compared a version that is no number
        return TEXT
    return OPENMETRICS if content_type.startswith("application/openmetrics-text") else TEXT


class Page:
    """
    What a scrape gets: the families of the agent's last publishing.

    Publishing is one assignment, so a scrape never holds the agent up. The page is written by the
    first scrape that asks for a format after a publishing: what nobody reads costs nothing.
    """

    def __init__(
        self, interval_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval = interval_seconds
        self._clock = clock
        self._edition: _Edition | None = None
        self._writer = _Writer()
        self._writing = Lock()

    def publish(self, families: Iterable[Family]) -> None:
        """Replace the page. Neither the families nor their arrays may change afterwards."""
        self._edition = _Edition(tuple(families), self._clock())

    def problem(self) -> str:
        """Why the page must not be believed; empty when it is up to date."""
        if self._edition is None:
            return "nothing published yet: the agent is starting"
        age = self._clock() - self._edition.published
        if age <= _MISSED_INTERVALS * self._interval:
            return ""
        return f"last published {age:.1f} s ago instead of every {self._interval:g} s"

    def read(self, form: Format) -> bytes:
        """The page as published last; empty before that."""
        edition = self._edition
        if edition is None:
            return b""
        with self._writing:
            if form.content_type not in edition.bodies:
                edition.bodies[form.content_type] = self._writer.write(edition.families, form)
            return edition.bodies[form.content_type]


@dataclass(frozen=True)
class _Edition:
    families: Sequence[Family]
    published: float
    bodies: dict[str, bytes] = field(default_factory=dict)
    """By content type, those that were asked for."""


class _Writer:
    """Writes pages, and remembers the layout of the rows of the last one."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[str, Sequence[str]], str] = {}

    def write(self, families: Iterable[Family], form: Format) -> bytes:
        known, self._layouts = self._layouts, {}
        parts: list[str] = []
        for family in families:
            parts.append(_heading(family.metric, form))
            for labels, value in family.rows.items():
                key = (family.metric.name, labels)
                layout = known.get(key) or _layout(family, labels)
                self._layouts[key] = layout
                exemplars = family.exemplars.get(labels, ()) if form.exemplars else ()
                parts.append(layout % _values(value, family.edges, exemplars))
        parts.append(form.end)
        return "".join(parts).encode(errors="backslashreplace")


class _Single(core.CollectorRegistry):
    """A registry of one family, because the library's encoders take a registry."""

    def __init__(self, family: core.Metric) -> None:
        super().__init__()
        self._family = family

    def collect(self) -> Iterator[core.Metric]:
        yield self._family


def _heading(metric: Metric, form: Format) -> str:
    family = _FAMILIES[metric.type](metric.name, metric.help, labels=metric.labels)
    return form.encode(_Single(family)).decode().removesuffix(form.end)


def _layout(family: Family, labels: Sequence[str]) -> str:
    """The row's lines as the library writes them, in either format, with ``%s`` for the values."""
    row = _FAMILIES[family.metric.type](family.metric.name, "", labels=family.metric.labels)
    printable = [label.encode(errors="backslashreplace").decode() for label in labels]
    if isinstance(row, core.HistogramMetricFamily):
        row.add_metric(printable, [(bound, 0) for bound in _bounds(family)], 0)
    else:
        row.add_metric(printable, 0)
    lines = exposition.generate_latest(_Single(row)).decode().split("\n")
    heads = (line.rpartition(" ")[0] for line in lines if line and not line.startswith("#"))
    return "".join(f"{head.replace('%', '%%')} %s\n" for head in heads)


def _bounds(family: Family) -> list[str]:
    edges = () if family.edges is None else family.edges
    return [*(str(edge) for edge in edges), "+Inf"]


def _values(
    value: float | Histogram, edges: NDArray[np.float64] | None, exemplars: Sequence[Exemplar]
) -> tuple[object, ...]:
    """What fills the layout: the value, or cumulative buckets, count and sum."""
    if not isinstance(value, Histogram) or edges is None:
        return (value,)
    cumulative = value.counts.cumsum().tolist()
    buckets: list[object] = list(cumulative)
    for exemplar in sorted(exemplars, key=lambda each: each.unix_seconds):
        at = int(edges.searchsorted(exemplar.value))
        buckets[at] = f"{cumulative[at]} {_exemplar(exemplar)}"  # the latest in its bucket stays
    return (*buckets, cumulative[-1], value.sum)


def _exemplar(exemplar: Exemplar) -> str:
    labels = ",".join(f'{name}="{_escape(text)}"' for name, text in _fitting(exemplar.labels))
    return f"# {{{labels}}} {exemplar.value} {exemplar.unix_seconds:.3f}"


def _fitting(labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The labels up to the first that goes beyond what the format allows."""
    room = _EXEMPLAR_CHARACTERS
    for name, text in labels.items():
        room -= len(name) + len(text)
        if room < 0:
            return
        yield name, text


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
