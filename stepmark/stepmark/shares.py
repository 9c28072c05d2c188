"""Tenants and their weights, as a finished mark carries them."""

from __future__ import annotations

import operator
import struct
from collections.abc import Mapping
from typing import NamedTuple

from stepmark import page as layout
from stepmark.process import process

MAX_WEIGHT = 2**32 - 1


class Shares(NamedTuple):
    largest: int
    """The tenant with the largest weight."""

    number: int
    packed: bytes
    dropped: int
    """Tenants beyond those that a mark can name."""


NOBODY = Shares(0, 0, b"", 0)


def shares_of(tenants: str | Mapping[str, int]) -> Shares:
    """
    The shares of one tenant, or of several by weight.

    Raises TypeError or ValueError for a name that is no str and a weight that is no integer > 0.
    """
    if isinstance(tenants, str):
        tenants = {tenants: 1}
    if not isinstance(tenants, Mapping):
        raise TypeError(f"tenants are {tenants!r}, must be a name or a mapping of names to weights")
    weights = {_name(name): _weight(name, weight) for name, weight in tenants.items()}
    kept = sorted(weights, key=weights.__getitem__, reverse=True)[: layout.SHARES]
    ids = [process.tenant(name) for name in kept]
    packed = [struct.pack("@II", *pair) for pair in zip(ids, scaled([weights[n] for n in kept]))]
    return Shares(ids[0] if ids else 0, len(ids), b"".join(packed), len(weights) - len(kept))


def scaled(weights: list[int]) -> list[int]:
    """The same proportions within 32 bits; ``weights`` are > 0, the largest first."""
    if not weights or weights[0] <= MAX_WEIGHT:
        return weights
    return [max(1, weight * MAX_WEIGHT // weights[0]) for weight in weights]


def _name(name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"tenant is {name!r}, must be a str")
    return name


def _weight(name: str, weight: int) -> int:
    try:
        weight = operator.index(weight)
    except TypeError:
        raise TypeError(f"weight of tenant {name!r} is {weight!r}, must be an integer") from None
    if weight < 1:
        raise ValueError(f"weight of tenant {name!r} is {weight}, must be at least 1")
    return weight
