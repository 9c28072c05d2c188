"""
Machines as text: below this directory, NAME.tree has a line ``PATH<TAB>CONTENT`` for each file.

``[0-87]`` in a path stands for as many files; ``{n // 84}`` in its content is computed for each.
``\\n`` and ``\\t`` in the content are a new line and a tab.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.tree"))

_RANGE = re.compile(r"\[(\d+)-(\d+)\]")
_TERM = re.compile(r"\{([n0-9 +*/%-]+)\}")


_SHARED = TemporaryDirectory(prefix="tailtrace-trees-")


@cache
def planted(name: str) -> tuple[Path, Path]:
    """The machine's ``proc`` and ``sys`` for tests that change nothing below them."""
    return plant(name, Path(_SHARED.name) / name)


def plant(name: str, directory: Path) -> tuple[Path, Path]:
    """Write the machine's files below ``directory``; its ``proc`` and ``sys``."""
    for line in (HERE / f"{name}.tree").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, _, content = line.partition("\t")
            for path, text in _expanded(pattern, content):
                write(directory / path, text)
    return directory / "proc", directory / "sys"


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content.replace("\\n", "\n").replace("\\t", "\t") + "\n")


def _expanded(pattern: str, content: str) -> Iterator[tuple[str, str]]:
    numbers = _RANGE.search(pattern)
    if not numbers:
        yield pattern, content
        return
    for n in range(int(numbers[1]), int(numbers[2]) + 1):
        text = _TERM.sub(lambda term, n=n: str(eval(term[1], {"n": n})), content)
        yield _RANGE.sub(str(n), pattern), text
