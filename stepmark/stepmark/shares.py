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
    weights = sorted(((_weight(*item), item[0]) for item in tenants.items()), reverse=True)
    kept = weights[: layout.SHARES]
    pairs = [(process.tenant(name), weight) for weight, name in _scaled(kept)]
    packed = b"".join(struct.pack("=II", *pair) for pair in pairs)
    return Shares(pairs[0][0] if pairs else 0, len(pairs), packed, len(weights) - len(kept))


def _weight(name: str, weight: int) -> int:
    try:
        weight = operator.index(weight)
    except TypeError:
        raise TypeError(f"weight of tenant {name!r} is {weight!r}, must be an integer") from None
    if weight < 1:
        raise ValueError(f"weight of tenant {name!r} is {weight}, must be at least 1")
    return weight


def _scaled(weights: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The same proportions within 32 bits. Largest first, as given."""
    if not weights or weights[0][0] <= MAX_WEIGHT:
        return weights
    largest = weights[0][0]
    return [(max(1, weight * MAX_WEIGHT // largest), name) for weight, name in weights]
