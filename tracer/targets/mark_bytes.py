"""
Parts of a mark page as arrays.

The page is never mapped, because its writer could cut it short under a mapping; parts of it are
read into memory of our own.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tracer.kernel import btf
from tracer.model import Records
from tracer.targets.mark_file import Reason, Refused


@dataclass(frozen=True, slots=True)
class Layout:
    """``stepmark_page.h``, as its debug information tells it."""

    limits: dict[str, int]
    """``enum stepmark_limits`` without its prefix."""

    what: dict[str, int]
    header: np.dtype[np.void]
    slot: np.dtype[np.void]
    done: np.dtype[np.void]
    offsets: dict[str, int]
    """Of the parts of the page, in bytes."""

    size: int


@cache
def layout() -> Layout:
    wire = btf.wire()
    page = wire.dtype("stepmark_page")
    assert page.fields is not None
    return Layout(
        limits={n.removeprefix("STEPMARK_"): v for n, v in wire.enum("stepmark_limits").items()},
        what={n.removeprefix("STEPMARK_"): v for n, v in wire.enum("stepmark_what").items()},
        header=wire.dtype("stepmark_header"),
        slot=wire.dtype("stepmark_slot"),
        done=wire.dtype("stepmark_done"),
        offsets={name: field[1] for name, field in page.fields.items()},
        size=page.itemsize,
    )


class PageBytes:
    """The file of a mark page. Every method raises Refused when the file was cut short."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        os.close(self._descriptor)

    @property
    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def header(self) -> np.void:
        """One ``struct stepmark_header``."""
        raw = self._read(layout().offsets["header"], layout().header.itemsize)
        header: np.void = np.frombuffer(raw, layout().header)[0]
        return header

    def slots(self) -> Records:
        """(STEPMARK_SLOTS,) ``struct stepmark_slot``."""
        size = layout().limits["SLOTS"] * layout().slot.itemsize
        return np.frombuffer(self._read(layout().offsets["slots"], size), layout().slot)

    def names(self, table: str, first: int, end: int) -> list[bytes]:
        """Entries ``first`` to ``end`` of ``kinds`` or ``tenants``, without their padding."""
        size = layout().limits["NAME_LEN"]
        raw = self._read(layout().offsets[table] + first * size, (end - first) * size)
        return [raw[at : at + size].partition(b"\0")[0] for at in range(0, len(raw), size)]

    def ring(self, slot: int, first: int, count: int) -> bytes:
        """``count`` finished marks of a slot from number ``first`` on, around the ring's end."""
        size, length = layout().done.itemsize, layout().limits["RING"]
        start = layout().offsets["rings"] + slot * length * size
        at = first % length
        head = min(count, length - at)
        data = self._read(start + at * size, head * size)
        return data + self._read(start, (count - head) * size) if count > head else data

    def _read(self, offset: int, size: int) -> bytes:
        data = os.pread(self._descriptor, size, offset)
        if len(data) != size:
            raise Refused(Reason.TRUNCATED, f"the file ends before byte {offset + size}")
        return data


def with_slot(records: Records, slots: NDArray[np.intp]) -> Records:
    """The same records with the number of their slot as a last field, ``slot``."""
    out = np.empty(len(records), _dtype_with_slot(records.dtype))
    for name in records.dtype.fields or ():
        out[name] = records[name]
    out["slot"] = slots
    return out


@cache
def _dtype_with_slot(dtype: np.dtype[np.void]) -> np.dtype[np.void]:
    fields = [(name, field[0]) for name, field in (dtype.fields or {}).items()]
    return np.dtype([*fields, ("slot", np.uint32)])
