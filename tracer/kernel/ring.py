"""
A BPF ring buffer of fixed-size records, read in whole batches without a call per record.

The layout is that of ``kernel/bpf/ringbuf.c``: a page with the consumer's position, a page with the
producer's, and the data.
"""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray

from tracer.model import Records

_BUSY = np.uint32(1 << 31)  # BPF_RINGBUF_BUSY_BIT: reserved, not yet submitted


class Ring:
    def __init__(self, fd: int, size: int, dtype: np.dtype[np.void]) -> None:
        page = mmap.PAGESIZE
        self._size = size
        self._stride = 8 + (dtype.itemsize + 7) // 8 * 8
        self._record = np.dtype(
            {
                "names": ["length", "record"],
                "formats": ["u4", dtype],
                "offsets": [0, 8],
                "itemsize": self._stride,
            }
        )
        self._consumer = np.frombuffer(mmap.mmap(fd, page, mmap.MAP_SHARED), np.uint64, 1)
        produced = mmap.mmap(fd, page + size, mmap.MAP_SHARED, mmap.PROT_READ, offset=page)
        self._producer = np.frombuffer(produced, np.uint64, 1)
        self._data = np.frombuffer(produced, np.uint8, size, page)

    def drain(self) -> Records:
        """All records that are complete, in the order in which they were reserved."""
        begin = int(self._consumer[0])
        count = (int(self._producer[0]) - begin) // self._stride
        batch = self._copy(begin % self._size, count * self._stride).view(self._record)
        busy = np.flatnonzero(batch["length"] & _BUSY)
        whole = batch[: busy[0]] if len(busy) else batch
        self._consumer[0] = begin + len(whole) * self._stride
        records: Records = whole["record"]
        return records

    def _copy(self, first: int, size: int) -> NDArray[np.uint8]:
        """The bytes from ``first`` on, around the end of the data where they go beyond it."""
        return np.concatenate(
            [self._data[first : first + size], self._data[: max(0, first + size - self._size)]]
        )

    @property
    def fill(self) -> float:
        """How full the ring is, 0 to 1."""
        return (int(self._producer[0]) - int(self._consumer[0])) / self._size
