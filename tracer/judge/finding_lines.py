"""Findings as lines on a screen."""

from __future__ import annotations

import textwrap

from tracer.judge.findings import Finding, Weight
from tracer.targets.text import visible

WIDTH = 100

_SIGNS = {Weight.MISLEADS: "!!", Weight.COSTS: "! ", Weight.NOTE: "- "}
_LONGEST = 1000  # characters of a finding: names in it are strangers' own


def finding_lines(finding: Finding, brief: bool = False) -> list[str]:
    """What is seen, what it implies and what to do; of a note, when brief, only the first."""
    seen = wrapped(f"{_SIGNS[finding.weight]} ", finding.seen)
    if finding.weight is Weight.NOTE and brief:
        return seen
    implies = wrapped("   ", f"{finding.sure}: {finding.implies}")
    return [*seen, *implies, *wrapped("   do: ", finding.action)]


def wrapped(begin: str, text: str) -> list[str]:
    """Of at most WIDTH columns, ``begin`` before the first line and as much space before others."""
    shown = visible(text.encode(), _LONGEST)
    return textwrap.wrap(
        shown, WIDTH, initial_indent=begin, subsequent_indent=" " * min(len(begin), 13)
    )
