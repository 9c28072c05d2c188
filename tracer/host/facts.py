"""
What a machine says of itself: a value with the place that says it, or the reason why there is none.

Absent is not zero, so nothing here has a default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

_T = TypeVar("_T")
_U = TypeVar("_U")
_T_co = TypeVar("_T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Known(Generic[_T_co]):
    value: _T_co
    source: str = ""
    """The file, or the observation, that says so."""


@dataclass(frozen=True, slots=True)
class Unknown:
    reason: str


Fact: TypeAlias = Known[_T_co] | Unknown


def value_of(fact: Known[_T] | Unknown) -> _T | None:
    """For conditions that hold only of what is known."""
    return fact.value if isinstance(fact, Known) else None


def why(fact: Known[object] | Unknown) -> str:
    """Where it is known from, or why it is not known."""
    return fact.source if isinstance(fact, Known) else fact.reason


def convert(fact: Known[_T] | Unknown, into: Callable[[_T], _U]) -> Fact[_U]:
    """``into(value)``; unknown when it raises ValueError or IndexError."""
    if isinstance(fact, Unknown):
        return fact
    try:
        return Known(into(fact.value), fact.source)
    except (ValueError, IndexError):
        return Unknown(f"{fact.source} is not understood: {str(fact.value)[:60]!r}")


def text(path: Path) -> Fact[str]:
    """A file's content without surrounding space."""
    try:
        return Known(path.read_text(errors="replace").strip("\0 \t\n"), str(path))
    except FileNotFoundError:
        return Unknown(f"{path} does not exist")
    except OSError as e:
        return Unknown(f"{path}: {e.strerror}")


def number(path: Path) -> Fact[int]:
    return convert(text(path), int)


def cpus(path: Path) -> Fact[frozenset[int]]:
    """A file in the format of CPU and node lists: ``0-3,8``."""
    return convert(text(path), parse_cpus)


def entries(directory: Path, pattern: str) -> list[Path]:
    """What lies in a directory, by number: ``cpu2`` before ``cpu10``. Empty without directory."""
    found = [(int("".join(filter(str.isdigit, p.name)) or 0), p) for p in directory.glob(pattern)]
    return [path for _, path in sorted(found)]


def parse_cpus(listed: str) -> frozenset[int]:
    """The numbers in ``0-3,8``. Raises ValueError when it is no such list."""
    found: set[int] = set()
    for part in filter(None, listed.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def format_cpus(numbers: Iterable[int]) -> str:
    """The inverse of ``parse_cpus``; ``none`` for no number."""
    ordered = sorted(numbers)
    starts = [n for i, n in enumerate(ordered) if i == 0 or ordered[i - 1] != n - 1]
    ends = [a for a, b in pairwise(ordered) if b != a + 1] + ordered[-1:]
    spans = (str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
    return ",".join(spans) or "none"
