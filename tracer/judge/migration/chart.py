"""
Two distributions as inline SVG: the part beyond each duration, both axes logarithmic. Limits are
bars that the curve must pass on the left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from tracer.judge.migration.distribution import Distribution
from tracer.judge.words import duration

_WIDTH, _HEIGHT = 530, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 30, 34, 40
_LEAST = 1e-5  # of all observations: where the vertical axis ends
_BEFORE, _AFTER, _LIMIT = "#b3261e", "#1f5fbf", "#1a1a1a"


@dataclass(frozen=True, slots=True)
class Limit:
    seconds: float
    part: float
    """Of all observations, which may take longer."""

    text: str


def chart(
    title: str, before: Distribution, after: Distribution, limits: Sequence[Limit] = ()
) -> str:
    """An ``svg`` element. There are observations on both sides."""
    reach = [edge for side in (before, after) for edge in side.survival()[0]]
    reach += [limit.seconds for limit in limits]
    first = math.floor(math.log10(min(reach)))
    last = max(math.ceil(math.log10(max(reach))), first + 1)
    return "\n".join(_elements(title, before, after, limits, (first, last)))


def _elements(
    title: str,
    before: Distribution,
    after: Distribution,
    limits: Sequence[Limit],
    decades: tuple[int, int],
) -> Iterator[str]:
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
    yield f'role="img" aria-label="{escape(title)}">'
    yield f'<text x="{_LEFT}" y="18" font-weight="600">{escape(title)}</text>'
    for decade in range(decades[0], decades[1] + 1):
        x = _x(10.0**decade, decades)
        yield _line(x, _TOP, x, _HEIGHT - _BOTTOM)
        yield _label(x, _HEIGHT - _BOTTOM + 18, "middle", duration(10.0**decade))
    for decade in range(round(math.log10(_LEAST)), 1):
        y = _y(10.0**decade)
        yield _line(_LEFT, y, _WIDTH - _RIGHT, y)
        yield _label(_LEFT - 6, y + 4, "end", f"{100 * 10.0**decade:g} %")
    for at, (name, side, colour) in enumerate(
        (("before", before, _BEFORE), ("after", after, _AFTER))
    ):
        yield f'<path d="{_path(side, decades)}" fill="none" stroke="{colour}" stroke-width="2"/>'
        x = _WIDTH - _RIGHT - 48 * (1 - at)
        yield f'<text x="{x}" y="18" text-anchor="end" fill="{colour}">{name}</text>'
    for limit in limits:
        x, y = _x(limit.seconds, decades), _y(limit.part)
        yield f'<path d="M{x:.1f},{y - 9:.1f}V{y + 9:.1f}" stroke="{_LIMIT}" stroke-width="3"/>'
        yield _label(x, y + 22, "middle", limit.text)
    yield "</svg>"


def _path(side: Distribution, decades: tuple[int, int]) -> str:
    """Steps: a bucket's observations are counted at its upper edge."""
    edges, beyond = side.survival()
    path = [f"M{_x(10.0 ** decades[0], decades):.1f},{_y(1):.1f}"]
    for edge, part in zip(edges, beyond, strict=True):
        path.append(f"H{_x(float(edge), decades):.1f}V{_y(float(part)):.1f}")
    return "".join(path)


def _x(seconds: float, decades: tuple[int, int]) -> float:
    first, last = decades
    part = (math.log10(seconds) - first) / (last - first)
    return _LEFT + part * (_WIDTH - _LEFT - _RIGHT)


def _y(part: float) -> float:
    depth = math.log10(max(part, _LEAST)) / math.log10(_LEAST)
    return _TOP + depth * (_HEIGHT - _TOP - _BOTTOM)


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:.1f},{y1:.1f}L{x2:.1f},{y2:.1f}" stroke="#e4e4e4"/>'


def _label(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#555">{escape(text)}</text>'
