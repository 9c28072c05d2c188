"""What can be told on this machine, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracer import catalog
from tracer.model import Capability


def missing(capabilities: Sequence[Capability]) -> list[Capability]:
    """What a machine should be able to tell, and this one cannot."""
    return [
        each
        for each in capabilities
        if not each.available and each.name not in catalog.OPTIONAL_CAPABILITIES
    ]


def as_lines(capabilities: Sequence[Capability]) -> Iterator[str]:
    """A table, and below it the reasons."""
    yield f"{'':4}{'CAPABILITY':14} {'SOURCE':28} WHAT IT TELLS"
    for each in capabilities:
        sign = "ok" if each.available else "--"
        source = _shortened(each.source)
        yield f"{sign:4}{each.name:14} {source:28} {catalog.CAPABILITIES[each.name]}"
    for each in capabilities:
        if each.reason:
            yield f"{each.name}: {each.reason}"


def _shortened(source: str, width: int = 28) -> str:
    first, *others = source.split("+")
    return source if len(source) <= width else f"{first} and {len(others)} more"
