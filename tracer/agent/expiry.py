"""
Series of tenants that are gone are no longer exported: on a node where pods come and go they would
outnumber the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TypeVar

from tracer import catalog
from tracer.ledger.labels import OTHER
from tracer.model import Family

_Value = TypeVar("_Value")

AFTER_SECONDS = 900
"""Without sign of life: long enough for every rate and alert to have seen the last of it."""

_OF_WHOM = ("tenant", "victim")
"""Labels by which a series is a tenant's."""

_SIGNS_OF_LIFE = (catalog.TARGETS, catalog.STEP_RATIO, catalog.DESCHEDULE_WINDOW_COUNT)
"""A process, a step or a deschedule in the window: their rows are of now, not since the start."""


class Expiry:
    """A tenant that comes back goes on with the counts it had."""

    def __init__(self) -> None:
        self._last_sign: dict[str, float] = {}
        """Of those that live: tenant -> seconds."""

    def living(self, families: Iterable[Family], now_seconds: float) -> list[Family]:
        """The families without the rows of tenants that are gone."""
        everything = list(families)
        self._last_sign.update(dict.fromkeys(_with_signs(everything), now_seconds))
        oldest = now_seconds - AFTER_SECONDS
        self._last_sign = {name: at for name, at in self._last_sign.items() if at >= oldest}
        return [_of(self._last_sign.keys() | {OTHER}, family) for family in everything]


def _with_signs(families: Iterable[Family]) -> Iterator[str]:
    for family in families:
        if family.metric in _SIGNS_OF_LIFE:
            yield from (labels[0] for labels, value in family.rows.items() if value)


def _of(tenants: Set[str], family: Family) -> Family:
    at = next((family.metric.labels.index(n) for n in _OF_WHOM if n in family.metric.labels), None)
    if at is None:
        return family
    return Family(
        family.metric,
        _kept(family.rows, at, tenants),
        family.edges,
        _kept(family.exemplars, at, tenants),
    )


def _kept(
    rows: Mapping[Sequence[str], _Value], at: int, tenants: Set[str]
) -> Mapping[Sequence[str], _Value]:
    return {labels: value for labels, value in rows.items() if labels[at] in tenants}
