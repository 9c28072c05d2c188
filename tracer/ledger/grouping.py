"""Rows of equal keys brought together, so that they can be summed at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.intp]


def group(*keys: NDArray[np.generic]) -> tuple[Positions, Positions]:
    """
    The order that sorts rows by their keys, the first key first, and where in that order each
    group of equal keys begins.

    Sums of a column: ``np.add.reduceat(column[order], first)``.
    """
    order = np.lexsort(keys[::-1])
    begins = np.ones(len(order), bool)
    if len(order):
        ordered = [key[order] for key in keys]
        begins[1:] = np.any([key[1:] != key[:-1] for key in ordered], axis=0)
    return order, np.flatnonzero(begins)


def add_rows(table: NDArray[np.float64], row: NDArray[np.integer], values: NDArray[Any]) -> None:
    """``np.add.at(table, row, values)`` of values (n, k), which takes that four times as long."""
    order, first = group(row)
    if len(order):
        table[row[order[first]]] += np.add.reduceat(values[order], first, axis=0)


def largest_of_each(size: NDArray[np.signedinteger], most: int, *keys: NDArray[Any]) -> Positions:
    """Of each group of equal keys the rows with the largest sizes, largest first."""
    order: Positions = np.lexsort((-size, *keys[::-1]))
    new = np.zeros(len(order), bool)
    for key in keys:
        new[1:] |= key[order][1:] != key[order][:-1]
    chosen: Positions = order[rank_within(np.cumsum(new)) < most]
    return chosen


def rank_within(group_of: NDArray[np.integer]) -> Positions:
    """How many rows of the same group stand before each row; ``group_of`` is sorted."""
    return np.arange(len(group_of)) - np.searchsorted(group_of, group_of)
