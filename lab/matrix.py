"""What several kernels answered, side by side: as text for people, as the page docs/kernels.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lab.emulator import CHECKOUT
from lab.examination import Examination
from tracer.judge.words import duration

PAGE = CHECKOUT / "docs/kernels.md"

_INTRODUCTION = """\
# Kernels

<!-- Written by `make kernels`. -->

What Debian's stock kernels let the tracer tell in a virtual machine, and by what means, asked by
`tailtrace check`. `make lab` compares: what is told there by other means, or no more, fails.

5.10 is below the floor: `tailtrace check` exits there with 3 and says why.
"""

Column = Mapping[str, str]
"""Row -> cell."""


def mechanisms(examined: Examination) -> Column:
    """By what each capability is told."""
    return {each["name"]: each["source"] for each in examined.capabilities}


def verified(examined: Examination) -> Column:
    """Instructions that the verifier processed, in all and per program."""
    counts = examined.verified
    return {name: f"{n:,}" for name, n in {"all": sum(counts.values()), **counts}.items()}


TABLES = {
    "Told by": ("capability", mechanisms),
    "Instructions that the verifier processed": ("program", verified),
}


def page(examined: Sequence[Examination]) -> str:
    """Markdown."""
    parts = [_INTRODUCTION]
    for title, (corner, column) in TABLES.items():
        head, *rows = _grid(corner, {each.kernel: column(each) for each in examined})
        lines = [head, ["---"] * len(head), *rows]
        parts += [f"## {title}\n", "".join(f"| {' | '.join(line)} |\n" for line in lines)]
    releases = ", ".join(each.release for each in examined)
    return "\n".join([*parts, f"Written from {releases}.\n"])


def told_by_page(text: str, title: str, kernel: str) -> Column:
    """That column of a table in the page's text; empty when there is none."""
    section = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
    table = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    if not table or kernel not in table[0]:
        return {}
    at = table[0].index(kernel)
    return {row[0]: row[at] for row in table[2:] if row[at] != "-"}


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
