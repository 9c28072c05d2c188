"""What several kernels answered, side by side: kernels x causes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lab.examination import Examination
from tracer.judge.words import duration

Column = Mapping[str, str]
"""Row -> cell."""


def verified(examined: Examination) -> Column:
    """Instructions that the verifier processed, per program and in all."""
    counts = examined.verified
    return {name: f"{n:,}" for name, n in {**counts, "all": sum(counts.values())}.items()}


def as_lines(examined: Sequence[Examination]) -> Iterator[str]:
    """Kernels x causes, why some of the cells are empty, and what the verifier had to do."""
    yield "Provoked, measured, error"
    figures = {
        f"{each.kernel} ({each.release.partition('-')[0]})": {
            row["cause"]: _figures(row) for row in each.causes
        }
        for each in examined
    }
    yield from _aligned(_grid("CAUSE", figures))
    yield from _reasons(examined)
    yield ""
    yield "Instructions that the verifier processed"
    yield from _aligned(_grid("PROGRAM", {each.kernel: verified(each) for each in examined}))


def _figures(row: Mapping[str, Any]) -> str:
    if row["error"] is None:
        return str(row["verdict"]).removesuffix(" here")
    figures = f"{duration(row['provoked'])}  {duration(row['measured'])} {row['error']:+7.1%}"
    return figures if row["verdict"] == "named" else f"{row['verdict'].upper()} {figures}"


def _reasons(examined: Iterable[Examination]) -> Iterator[str]:
    """Each once, with the kernels that gave it."""
    given: dict[str, list[str]] = {}
    for each in examined:
        for row in each.causes:
            if row["verdict"] != "named":
                given.setdefault(f"{row['cause']}: {row['reason']}", []).append(each.kernel)
    for reason, kernels in given.items():
        yield f"{reason} ({', '.join(kernels)})"


def _grid(corner: str, columns: Mapping[str, Column]) -> list[list[str]]:
    """Head and rows; "-" where a column has no such row."""
    names = dict.fromkeys(name for column in columns.values() for name in column)
    rows = [[name, *(column.get(name, "-") for column in columns.values())] for name in names]
    return [[corner, *columns], *rows]


def _aligned(grid: Sequence[Sequence[str]]) -> Iterator[str]:
    """The first column to the left, the others to the right."""
    first, *others = [max(map(len, column)) for column in zip(*grid, strict=True)]
    for name, *cells in grid:
        yield "  ".join([name.ljust(first), *map(str.rjust, cells, others)])
