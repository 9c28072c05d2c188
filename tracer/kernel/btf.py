"""
Layouts and names from BTF, the kernel's debug information: the only place where Python learns
what ``bpf/wire.h`` and the running kernel look like.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tracer.kernel import libbpf

_OBJECTS = Path(__file__).with_name("objects")

# include/uapi/linux/btf.h
_INT, _PTR, _ARRAY, _STRUCT, _UNION, _ENUM = 1, 2, 3, 4, 5, 6
_TYPEDEF, _VOLATILE, _CONST, _RESTRICT = 8, 9, 10, 11
_FUNC_PROTO, _DATASEC, _TYPE_TAG = 13, 15, 18
_ALIASES = {_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG}
_HEAD = struct.Struct("=III")  # struct btf_type: name_off, info, size or type


class Btf:
    """Types by name, of one object file or of the running kernel."""

    def __init__(self, handle: libbpf.Pointer) -> None:
        self._handle = handle

    @classmethod
    def of_object(cls, path: Path) -> Btf:
        return cls(libbpf.btf_parse(path))

    @classmethod
    @cache
    def of_kernel(cls) -> Btf:
        """Raises UnavailableError when the kernel was built without BTF."""
        return cls(libbpf.btf_of_kernel())

    def enum(self, name: str) -> dict[str, int]:
        """The enumerators of ``enum name`` in order."""
        kind, vlen, _, tail = self._type(self._find(name, _ENUM))
        return {
            self._name(name_off): value for name_off, value in struct.iter_unpack("=Ii", tail(8))
        }

    def names(self, enum: str, prefix: str) -> list[str]:
        """The enumerators of an enum that counts from 0, without prefix and closing ``NR_``."""
        return [n.removeprefix(prefix).lower() for n in self.enum(enum) if n.startswith(prefix)]

    def dtype(self, name: str) -> np.dtype[np.void]:
        """``struct name`` as a numpy dtype, holes included."""
        return self._dtype(self._find(name, _STRUCT))

    def has_field(self, name: str, *path: str) -> bool:
        """Whether ``struct name`` has the member, in anonymous members too, and so on inward."""
        try:
            at = self._find(name, _STRUCT)
        except KeyError:
            return False
        for field in path:
            inner = self._member(at, field)
            if inner is None:
                return False
            at = inner
        return True

    def tracepoint_arguments(self, name: str) -> int | None:
        """How many arguments the tracepoint passes; None when the kernel has no such tracepoint."""
        try:
            at = self._find(f"btf_trace_{name}", _TYPEDEF)
        except KeyError:
            return None
        kind = _TYPEDEF
        while kind != _FUNC_PROTO:
            kind, vlen, at, _ = self._type(at)
        return vlen - 1  # the first is the tracer's own data pointer

    def variables(self, section: str) -> dict[str, tuple[int, np.dtype[Any]]]:
        """Name -> (offset, dtype) of the variables in a data section of an object."""
        return {
            self._name(name_off): (offset, self._dtype(self._target(var)))
            for var, offset, _ in self._entries(self._find(section, _DATASEC), "=III")
            for name_off in [self._head(var)[0]]
        }

    # The rest walks records of struct btf_type.

    def _find(self, name: str, kind: int) -> int:
        at = libbpf.btf_find(self._handle, name, kind)
        if at is None:
            raise KeyError(name)
        return at

    def _head(self, at: int) -> tuple[int, int, int]:
        return _HEAD.unpack(libbpf.btf_type_bytes(self._handle, at, 0, _HEAD.size))  # type: ignore[return-value]

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
        for name_off, member, _ in self._entries(self._resolve(at), "=III"):
            member = self._resolve(member)
            kind = self._type(member)[0]
            if name_off and self._name(name_off) == field:
                return self._resolve(self._target(member)) if kind == _PTR else member
            if not name_off and kind in (_STRUCT, _UNION):
                inner = self._member(member, field)
                if inner is not None:
                    return inner
        return None

    def _dtype(self, at: int) -> np.dtype[Any]:
        at = self._resolve(at)
        kind, _, size, _ = self._type(at)
        if kind == _ARRAY:
            element, _, count = struct.unpack(
                "=III", libbpf.btf_type_bytes(self._handle, at, _HEAD.size, 12)
            )
            inner = self._dtype(element)
            if inner == np.dtype("S1"):  # char[n] is text
                return np.dtype(f"S{count}")
            return np.dtype((inner, (count,)))
        if kind == _STRUCT:
            fields = list(self._fields(at))
            return np.dtype(
                {
                    "names": [name for name, _, _ in fields],
                    "formats": [dtype for _, dtype, _ in fields],
                    "offsets": [offset for _, _, offset in fields],
                    "itemsize": size,
                }
            )
        if kind == _INT:
            return self._integer(at, size)
        if kind == _ENUM:
            return np.dtype("u4")
        if kind == _PTR:
            return np.dtype("u8")
        return np.dtype(f"V{size}")

    def _integer(self, at: int, size: int) -> np.dtype[Any]:
        (encoding,) = struct.unpack("=I", libbpf.btf_type_bytes(self._handle, at, _HEAD.size, 4))
        signed, char = encoding >> 24 & 1, self._name(self._head(at)[0]) == "char"
        return np.dtype("S1" if char else f"{'i' if signed else 'u'}{size}")

    def _fields(self, at: int) -> Iterator[tuple[str, np.dtype[Any], int]]:
        for name_off, member, bits in self._entries(at, "=III"):
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
