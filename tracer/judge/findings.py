"""A finding: what is seen on a machine, what that implies for inference on it, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Sure(StrEnum):
    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Weight(IntEnum):
    NOTE = 1
    COSTS = 2
    """Steps take longer by it."""

    MISLEADS = 3
    """What is measured here means something else than it seems to."""


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    weight: Weight
    sure: Sure
    """That what is implied is so; what is seen is seen."""

    seen: str
    implies: str
    action: str
