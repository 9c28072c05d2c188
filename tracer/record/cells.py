"""Tables of whole numbers as blobs: 64 bits each, little-endian, row by row, by zlib."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from tracer.ledger.histogram import BUCKETS
from tracer.ledger.profile import Profile

_WIDTH = 8


def pack(table: NDArray[np.int64]) -> bytes:
    """(n, columns) of non-negative and other whole numbers."""
    return zlib.compress(np.ascontiguousarray(table, "<i8").tobytes(), level=1)


def unpack(blob: bytes, columns: int, most_rows: int) -> NDArray[np.int64]:
    """
    (n, columns) with n up to ``most_rows``; never unpacks more than that.

    Raises ValueError or zlib.error when ``blob`` is something else.
    """
    size = most_rows * columns * _WIDTH
    stream = zlib.decompressobj()
    raw = stream.decompress(blob, size + 1)
    if not stream.eof or len(raw) % (columns * _WIDTH):
        raise ValueError(f"a blob is no table of {columns} columns and up to {most_rows} rows")
    return np.frombuffer(raw, "<i8").astype(np.int64).reshape(-1, columns)


def pack_profile(profile: Profile) -> bytes:
    """A profile of one row: bucket, count, ns by column."""
    return pack(np.column_stack([profile.cell, profile.count, profile.ns]))


def unpack_profile(blob: bytes, columns: int) -> Profile:
    table = unpack(blob, 2 + columns, BUCKETS)
    bucket, count = table[:, 0], table[:, 1]
    in_order = (bucket >= 0).all() and (bucket < BUCKETS).all() and (np.diff(bucket) > 0).all()
    if not in_order or (count <= 0).any():
        raise ValueError("buckets out of order or without observations")
    return Profile(bucket, count, table[:, 2:])
