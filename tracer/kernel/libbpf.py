"""
The system's ``libbpf.so.1`` through ctypes. The only module that knows pointers.
"""

from __future__ import annotations

import ctypes as c
import os
from functools import cache
from pathlib import Path
from typing import Any

from tracer.errors import UnavailableError

Pointer = c.c_void_p


@cache
def _library() -> c.CDLL:
    try:
        return c.CDLL("libbpf.so.1", use_errno=True)
    except OSError as e:
        raise UnavailableError(
            "libbpf.so.1 is not installed (Debian and Ubuntu: apt-get install libbpf1)"
        ) from e


@cache
def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(_library(), name)
    function.restype, function.argtypes = result, arguments
    return function


def _not_null(pointer: int | None, doing: str) -> Pointer:
    """libbpf 1.x returns NULL and sets errno."""
    if not pointer:
        raise UnavailableError(f"{doing}: {os.strerror(c.get_errno())}")
    return c.c_void_p(pointer)


def btf_parse(path: Path) -> Pointer:
    parse = _function("btf__parse", c.c_void_p, c.c_char_p, c.c_void_p)
    return _not_null(parse(os.fsencode(path), None), f"{path}: no debug information")


def btf_of_kernel() -> Pointer:
    load = _function("btf__load_vmlinux_btf", c.c_void_p)
    return _not_null(load(), "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)")


def btf_find(btf: Pointer, name: str, kind: int) -> int | None:
    """The id of a type by name and kind."""
    find = _function("btf__find_by_name_kind", c.c_int32, c.c_void_p, c.c_char_p, c.c_uint32)
    found: int = find(btf, name.encode(), kind)
    return found if found > 0 else None


def btf_type_bytes(btf: Pointer, at: int, offset: int, size: int) -> bytes:
    """Raw bytes of a ``struct btf_type`` and of what follows it."""
    by_id = _function("btf__type_by_id", c.c_void_p, c.c_void_p, c.c_uint32)
    return c.string_at(by_id(btf, at) + offset, size)


def btf_name(btf: Pointer, offset: int) -> str:
    by_offset = _function("btf__name_by_offset", c.c_char_p, c.c_void_p, c.c_uint32)
    name: bytes = by_offset(btf, offset)
    return name.decode()
