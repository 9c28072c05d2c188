"""
Layouts and names from BTF, the kernel's debug information: the only place where Python learns
what ``bpf/wire.h`` and the running kernel look like.
"""

from __future__ import annotations

import struct
import sys
import weakref
from collections.abc import Iterator
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tracer.kernel import libbpf

_OBJECTS = Path(__file__).with_name("objects")


class Kind(IntEnum):
    """include/uapi/linux/btf.h"""

    INT = 1
    PTR = 2
    ARRAY = 3
    STRUCT = 4
    UNION = 5
    ENUM = 6
    TYPEDEF = 8
    VOLATILE = 9
    CONST = 10
    RESTRICT = 11
    FUNC = 12
    FUNC_PROTO = 13
    DATASEC = 15
    TYPE_TAG = 18


_ALIASES = {Kind.TYPEDEF, Kind.VOLATILE, Kind.CONST, Kind.RESTRICT, Kind.TYPE_TAG}
_HEAD = struct.Struct("=III")  # struct btf_type: name_off, info, size or type


class Btf:
    """Types by name, of one object file or of the running kernel."""

    def __init__(self, handle: libbpf.Pointer) -> None:
        self._handle = handle

    @classmethod
    def of_object(cls, path: Path) -> Btf:
        return cls(libbpf.btf_parse(path))._owned()

    @classmethod
    def of_kernel(cls) -> Btf:
        """Some 6 MB. Raises UnavailableError when the kernel was built without BTF."""
        return cls(libbpf.btf_of_kernel())._owned()

    def _owned(self) -> Btf:
        weakref.finalize(self, libbpf.btf_free, self._handle)
        return self

    def enum(self, name: str) -> dict[str, int]:
        """The enumerators of ``enum name`` in order."""
        tail = self._type(self._find(name, Kind.ENUM))[3]
        return {
            self._name(name_off): value for name_off, value in struct.iter_unpack("=Ii", tail(8))
        }

    def names(self, enum: str, prefix: str) -> list[str]:
        """The enumerators of an enum that counts from 0, without prefix and closing ``NR_``."""
        return [n.removeprefix(prefix).lower() for n in self.enum(enum) if n.startswith(prefix)]

    def dtype(self, name: str) -> np.dtype[np.void]:
        """``struct name`` as a numpy dtype, holes included."""
        return self._dtype(self._find(name, Kind.STRUCT))

    def has_field(self, name: str, *path: str) -> bool:
        """Whether ``struct name`` has the member, in anonymous members too, and so on inward."""
        try:
            at = self._find(name, Kind.STRUCT)
        except KeyError:
            return False
        for field in path:
            inner = self._member(at, field)
            if inner is None:
                return False
            at = inner
        return True

    def elements(self, name: str, field: str) -> int | None:
        """How many elements the array ``field`` of ``struct name`` has; None without it."""
        try:
            fields = self._entries(self._find(name, Kind.STRUCT), "=III")
        except KeyError:
            return None
        for name_off, declared, _ in fields:
            at = self._resolve(declared)
            if self._name(name_off) == field and self._type(at)[0] == Kind.ARRAY:
                count = libbpf.btf_type_bytes(self._handle, at, _HEAD.size + 8, 4)
                return int.from_bytes(count, sys.byteorder)
        return None

    def tracepoint_arguments(self, name: str) -> int | None:
        """How many arguments the tracepoint passes; None when the kernel has no such tracepoint."""
        try:
            at = self._find(f"btf_trace_{name}", Kind.TYPEDEF)
        except KeyError:
            return None
        kind, vlen, at, _ = self._type(at)
        while kind != Kind.FUNC_PROTO:
            kind, vlen, at, _ = self._type(at)
        return vlen - 1  # the first is the tracer's own data pointer

    def has_function(self, name: str) -> bool:
        """Whether the kernel itself, without its modules, has a function of the name."""
        return libbpf.btf_find(self._handle, name, Kind.FUNC) is not None

    def variables(self, section: str) -> dict[str, tuple[int, np.dtype[Any]]]:
        """Name -> (offset, dtype) of the variables in a data section of an object."""
        return {
            self._name(name_off): (offset, self._dtype(self._target(var)))
            for var, offset, _ in self._entries(self._find(section, Kind.DATASEC), "=III")
            for name_off in [self._head(var)[0]]
        }

    # The rest walks records of struct btf_type.

    def _find(self, name: str, kind: int) -> int:
        at = libbpf.btf_find(self._handle, name, kind)
        if at is None:
            raise KeyError(name)
        return at

    def _head(self, at: int) -> tuple[int, int, int]:
        return _HEAD.unpack(libbpf.btf_type_bytes(self._handle, at, 0, _HEAD.size))

    def _type(self, at: int) -> tuple[int, int, int, Any]:
        """Kind, number of members, size or referred type, and a reader of what follows."""
        _, info, size = self._head(at)
        vlen = info & 0xFFFF

        def tail(each: int) -> bytes:
            return libbpf.btf_type_bytes(self._handle, at, _HEAD.size, vlen * each)

        return info >> 24 & 0x1F, vlen, size, tail

    def _entries(self, at: int, layout: str) -> Iterator[tuple[int, ...]]:
        tail = self._type(at)[3]
        return struct.iter_unpack(layout, tail(struct.calcsize(layout)))

    def _name(self, offset: int) -> str:
        return libbpf.btf_name(self._handle, offset)

    def _target(self, at: int) -> int:
        return self._type(at)[2]

    def _resolve(self, at: int) -> int:
        while True:
            kind, _, to, _ = self._type(at)
            if kind not in _ALIASES:
                return at
            at = to

    def _member(self, at: int, field: str) -> int | None:
        for name_off, declared, _ in self._entries(self._resolve(at), "=III"):
            member = self._resolve(declared)
            kind = self._type(member)[0]
            if name_off and self._name(name_off) == field:
                return self._resolve(self._target(member)) if kind == Kind.PTR else member
            if not name_off and kind in (Kind.STRUCT, Kind.UNION):
                inner = self._member(member, field)
                if inner is not None:
                    return inner
        return None

    def _dtype(self, at: int) -> np.dtype[Any]:
        at = self._resolve(at)
        kind, _, size, _ = self._type(at)
        match kind:
            case Kind.INT:
                return self._integer(at, size)
            case Kind.PTR:
                return np.dtype("u8")
            case Kind.ARRAY:
                return self._array(at)
            case Kind.STRUCT:
                return self._structure(at, size)
            case Kind.ENUM:
                return np.dtype("u4")
            case _:
                return np.dtype(f"V{size}")

    def _structure(self, at: int, size: int) -> np.dtype[Any]:
        names, formats, offsets = zip(*self._fields(at), strict=True)
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})

    def _array(self, at: int) -> np.dtype[Any]:
        element, _, count = struct.unpack(
            "=III", libbpf.btf_type_bytes(self._handle, at, _HEAD.size, 12)
        )
        inner = self._dtype(element)
        if inner == np.dtype("S1"):  # char[n] is text
            return np.dtype(f"S{count}")
        return np.dtype((inner, (count,)))

    def _integer(self, at: int, size: int) -> np.dtype[Any]:
        (encoding,) = struct.unpack("=I", libbpf.btf_type_bytes(self._handle, at, _HEAD.size, 4))
        signed, char = encoding >> 24 & 1, self._name(self._head(at)[0]) == "char"
        return np.dtype("S1" if char else f"{'i' if signed else 'u'}{size}")

    def _fields(self, at: int) -> Iterator[tuple[str, np.dtype[Any], int]]:
        bitfields = libbpf.btf_type_bytes(self._handle, at, 0, _HEAD.size)[7] >> 7  # kind_flag
        for name_off, member, where in self._entries(at, "=III"):
            bits = where & 0xFFFFFF if bitfields else where
            if name_off:
                yield self._name(name_off), self._dtype(member), bits // 8
            else:  # the members of an anonymous struct or union belong to the outer one
                for name, dtype, offset in self._fields(self._resolve(member)):
                    yield name, dtype, bits // 8 + offset


def object_path(stem: str) -> Path:
    """Where the built object ``bpf/<stem>.bpf.c`` lies, in a checkout and in an installed wheel."""
    return _OBJECTS / f"{stem}.bpf.o"


@cache
def wire() -> Btf:
    """Everything that crosses between kernel and agent, and the mark page."""
    return Btf.of_object(object_path("layout"))
