"""The rows of the bench and how they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.spread import Spread

_DIGITS = {"ns": 0, "us": 2, "ms": 0, "x": 2, "%": 2, "MB": 1, "/s": 0}
_HEAD = ("what", "measured", "spread", "n", "budget", "kept")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure, or why there is none."""

    what: str
    unit: str
    measured: Spread | None
    budget: float | None = None
    """At most this much, from the design's budgets. None: the row is there to compare with."""

    within_noise: bool = False
    """Measured as a difference that may as well be none."""

    note: str = ""

    @property
    def kept(self) -> bool | None:
        """Whether the budget is kept; None without one, and where nothing was measured."""
        if self.budget is None or self.measured is None:
            return None
        return self.within_noise or self.measured.median <= self.budget

    @classmethod
    def unavailable(cls, what: str, unit: str, reason: str) -> Row:
        return cls(what, unit, None, note=reason)


@dataclass(frozen=True, slots=True)
class Section:
    """Rows that were measured together, and how."""

    title: str
    method: str
    rows: Sequence[Row]


def as_dict(sections: Iterable[Section]) -> list[dict[str, Any]]:
    return [
        {
            "title": section.title,
            "method": section.method,
            "rows": [asdict(row) | {"kept": row.kept} for row in section.rows],
        }
        for section in sections
    ]


def as_markdown(section: Section) -> Iterator[str]:
    """Lines that read well in a terminal, too."""
    yield f"## {section.title}"
    yield ""
    yield section.method
    yield ""
    yield from _aligned([_HEAD, *map(_cells, section.rows)])
    notes = [f"- {row.what}: {row.note}" for row in section.rows if row.note]
    if notes:
        yield ""
        yield from notes


def _cells(row: Row) -> tuple[str, ...]:
    if row.measured is None:
        return (row.what, "unavailable", "", "", "", "")
    spread = row.measured
    return (
        row.what,
        _quantity(spread.median, row.unit),
        f"{_number(spread.low, row.unit)}-{_number(spread.high, row.unit)}" if spread.n > 1 else "",
        str(spread.n),
        "" if row.budget is None else f"<= {_quantity(row.budget, row.unit)}",
        _kept(row),
    )


def _kept(row: Row) -> str:
    if row.kept is None:
        return ""
    noise = " (within noise)" if row.within_noise else ""
    return f"{'yes' if row.kept else 'NO'}{noise}"


def _number(value: float, unit: str) -> str:
    return f"{value:,.{_DIGITS[unit]}f}"


def _quantity(value: float, unit: str) -> str:
    return f"{_number(value, unit)} {unit}"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *rest = (
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    yield f"| {head} |"
    yield f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    yield from (f"| {row} |" for row in rest)
