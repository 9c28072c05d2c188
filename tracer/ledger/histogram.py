"""
The buckets that the kernel side counts in, and what can be told from their counts.

``bpf/wire.h`` sets the limits and ``bpf/histogram.bpf.h`` is the writer: 32 buckets an octave from
2^10 ns to 2^36 ns. The first bucket also holds what is shorter, the last what is longer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tracer.kernel.btf import wire

_LIMITS = wire().enum("limits")
_MIN_SHIFT, _SUB_SHIFT = _LIMITS["HIST_MIN_SHIFT"], _LIMITS["HIST_SUB_SHIFT"]
BUCKETS = _LIMITS["HIST_BUCKETS"]


def _edges() -> NDArray[np.int64]:
    """(BUCKETS + 1,) where each bucket begins and, last, where the last one ends, in ns."""
    bucket = np.arange(BUCKETS + 1, dtype=np.int64)
    octave, sub = bucket >> _SUB_SHIFT, bucket & (1 << _SUB_SHIFT) - 1
    return ((1 << _SUB_SHIFT) + sub) << (octave + _MIN_SHIFT - _SUB_SHIFT)


_EDGES = _edges()

EDGES_SECONDS = np.array([m << k for k in range(14, 35) for m in (2, 3)][:-1]) / 1e9
"""(41,) the exported histograms' upper bounds, two an octave, from 2^15 ns (33 us) to 2^35 ns
(34 s). Each is an edge of the kernel's buckets."""


def edges() -> NDArray[np.int64]:
    """(BUCKETS,) upper bound of each bucket in ns; the bound itself belongs to the next bucket."""
    return _EDGES[1:]


def bucket_of(ns: ArrayLike) -> NDArray[np.int64]:
    """The bucket that counts each duration of ``ns``, of the same shape."""
    within = np.clip(np.asarray(ns, np.int64), _EDGES[0], _EDGES[-1] - 1)
    fraction, exponent = np.frexp(within.astype(np.float64))  # exact: below 2^53
    octave = exponent.astype(np.int64) - 1 - _MIN_SHIFT  # frexp's fraction is in [0.5, 1)
    sub = (fraction * (2 << _SUB_SHIFT)).astype(np.int64) - (1 << _SUB_SHIFT)
    return (octave << _SUB_SHIFT) + sub


def bucket_of_rank(counts: NDArray[np.integer], rank: ArrayLike) -> NDArray[np.int64]:
    """
    The bucket of the rank-th smallest observation, from 1.

    :param counts: (..., BUCKETS)
    :returns: (...), BUCKETS where there are fewer observations
    """
    below = np.cumsum(counts, axis=-1, dtype=np.int64)
    bucket: NDArray[np.int64] = (below < np.asarray(rank)[..., None]).sum(axis=-1)
    return bucket


def rank_of_quantile(n: ArrayLike, q: float) -> NDArray[np.int64]:
    """The rank ceil(q n), at least 1, of the observation that is a quantile among n."""
    rank = np.ceil(np.round(q * np.asarray(n), 6))  # 0.07 * 100 is 7.000000000000001
    return np.maximum(rank, 1).astype(np.int64)


def bucket_of_quantile(counts: NDArray[np.integer], q: float) -> NDArray[np.int64]:
    """The bucket of the observation of rank ceil(q n), at least 1, among n."""
    return bucket_of_rank(counts, rank_of_quantile(counts.sum(axis=-1, dtype=np.int64), q))


def middle_of(bucket: NDArray[np.int64]) -> NDArray[np.float64]:
    """The middle of each bucket in ns; of BUCKETS, which is none, NaN."""
    return np.append((_EDGES[:-1] + _EDGES[1:]) / 2, np.nan)[bucket]


def quantile(counts: NDArray[np.integer], q: float) -> NDArray[np.float64]:
    """
    The middle, in ns, of the bucket that holds the observation of rank ceil(q n).

    Within 1/64 = 1.6 % of that observation when it lies between 2^10 and 2^36 ns, because a bucket
    is at most 1/32 of its lower edge wide.

    :param counts: (..., BUCKETS)
    :returns: (...), NaN where there is no observation
    """
    return middle_of(bucket_of_quantile(counts, q))


def coarsen(counts: NDArray[np.integer], edges_seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """
    The same observations over fewer buckets.

    :param counts: (..., BUCKETS)
    :param edges_seconds: (n,) ascending; each must be an edge between two of the kernel's buckets
    :returns: (..., n + 1), not cumulative; the last is what reached the last edge
    """
    starts = np.append(0, _buckets_from(edges_seconds))
    return np.add.reduceat(counts, starts, axis=-1, dtype=np.int64)


def coarse_bucket_of(
    bucket: NDArray[np.int64], edges_seconds: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Which of the fewer buckets of :func:`coarsen` a bucket is in."""
    coarse: NDArray[np.int64] = np.searchsorted(_buckets_from(edges_seconds), bucket, side="right")
    return coarse


def _buckets_from(edges_seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """The buckets that begin at these edges."""
    edges_ns = np.rint(edges_seconds * 1e9).astype(np.int64)
    starts = bucket_of(edges_ns)
    if not np.array_equal(_EDGES[starts], edges_ns):
        raise ValueError(f"not edges of the kernel's buckets: {edges_seconds}")
    return starts
