"""
The memory of all maps on a large machine, computed from their definitions in the object.

How the kernel rounds, on 64 bits with 4 KiB pages (kernel/bpf of Linux 6.18):

- array: its head and, where it is mappable, its values begin on a page of their own; each value
  takes a multiple of 8 bytes. The number of values is not rounded for a loader with CAP_PERFMON
  (arraymap.c).
- hash: all elements in advance, one more for each CPU, 48 bytes and key and value in multiples of
  8 each; buckets of 16 bytes, as many as the next power of two (hashtab.c).
- ring buffer: three pages beside the data, and 8 bytes for each page as it is mapped, the data's
  twice (ringbuf.c).
- task storage: for each thread an element of 72 bytes and the value, and 176 bytes, both with 8
  more in the next size that the allocator has, a power of two from 256 bytes on; each CPU keeps up
  to 24 KiB of free ones of each at hand (bpf_local_storage.c, memalloc.c).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

from bench.spread import Spread
from bench.table import Row, Section
from tracer.errors import UnavailableError
from tracer.kernel.btf import object_path, wire

CPUS, THREADS, TENANTS = 256, 10_000, 1_000
_BUDGET_MB = 128.0
_PAGE = 4096
_METHOD = (
    f"Computed for {CPUS} CPUs, {THREADS:,} tracked threads and {TENANTS:,} tenants from the maps' "
    "definitions in the object's BTF, rounded as the kernel rounds (bench/maps.py); 1 MB is "
    "1,000,000 bytes."
)


class Type(IntEnum):
    """include/uapi/linux/bpf.h"""

    HASH = 1
    ARRAY = 2
    RINGBUF = 27
    TASK_STORAGE = 29


_MMAPABLE = 1 << 10  # BPF_F_MMAPABLE


@dataclass(frozen=True, slots=True)
class Map:
    """As an object defines it; sizes in bytes."""

    name: str
    type: Type
    entries: int = 0
    """For a ring buffer the bytes of its data, for task storage the threads."""

    key_size: int = 0
    value_size: int = 0
    flags: int = 0


def memory(definition: Map, cpus: int) -> int:
    """Bytes that the kernel takes for a map."""
    value = _up(definition.value_size, 8)
    match definition.type:
        case Type.ARRAY if definition.flags & _MMAPABLE:
            return _PAGE + _up(definition.entries * value, _PAGE)
        case Type.ARRAY:
            return _up(320 + definition.entries * value, _PAGE)
        case Type.HASH:
            elements = (definition.entries + cpus) * (48 + _up(definition.key_size, 8) + value)
            return _up(elements, _PAGE) + _up(16 * _power_of_two(definition.entries), _PAGE)
        case Type.RINGBUF:
            mapped = 3 + 2 * definition.entries // _PAGE
            return 3 * _PAGE + definition.entries + _up(8 * mapped, _PAGE)
        case Type.TASK_STORAGE:
            of_thread = (_allocated(72 + definition.value_size), _allocated(176))
            return definition.entries * sum(of_thread) + cpus * sum(map(_at_hand, of_thread))


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _power_of_two(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()


def _allocated(size: int) -> int:
    """With the allocator's own 8 bytes."""
    return 192 if 128 < size + 8 <= 192 else _power_of_two(size + 8)


def _at_hand(size: int) -> int:
    """Free elements that one CPU keeps at most (``init_refill_work``)."""
    return 96 * size if size <= 256 else max(96 * 256 // size, 3) * size


def definitions(types: list[dict[str, Any]]) -> Iterator[Map]:
    """The maps of an object, from ``bpftool --json btf dump file``: see ``bpf_helpers.h``."""
    by_id = {each["id"]: each for each in types}
    by_id[0] = {"kind": "VOID"}
    for section in (each for each in types if each["kind"] == "DATASEC"):
        if section["name"] == ".maps":
            for variable in (by_id[entry["type_id"]] for entry in section["vars"]):
                yield _definition(variable, by_id)
        elif section["name"] in {".bss", ".rodata"}:
            size = max(entry["offset"] + entry["size"] for entry in section["vars"])
            yield Map(section["name"], Type.ARRAY, 1, 4, size, _MMAPABLE)


def _definition(variable: dict[str, Any], by_id: dict[int, dict[str, Any]]) -> Map:
    """A number is the length of an array that a member points to; a type is what it points to."""
    members = by_id[variable["type_id"]]["members"]
    to = {member["name"]: by_id[member["type_id"]]["type_id"] for member in members}
    numbers = {name: by_id[at].get("nr_elems", 0) for name, at in to.items()}
    return Map(
        variable["name"],
        Type(numbers["type"]),
        entries=numbers.get("max_entries", 0),
        key_size=_size(to["key"], by_id) if "key" in to else 0,
        value_size=_size(to["value"], by_id) if "value" in to else 0,
        flags=numbers.get("map_flags", 0),
    )


def _size(at: int, by_id: dict[int, dict[str, Any]]) -> int:
    while "size" not in by_id[at]:
        at = by_id[at]["type_id"]
    size: int = by_id[at]["size"]
    return size


def scaled(maps: list[Map], cpus: int, threads: int, tenants: int) -> list[Map]:
    """With the entries that the agent gives them, and ``other`` beside the tenants."""
    limits = wire().enum("limits")
    entries = {
        "histograms": (tenants + 1) * limits["HIST_CAUSES"] * limits["HIST_STRIDE"],
        "cpus": cpus,
        "pulses": cpus,
        "threads": threads,
    }
    return [replace(each, entries=entries.get(each.name, each.entries)) for each in maps]


def of_object(path: Path) -> list[Map]:
    command = ["bpftool", "--json", "btf", "dump", "file", str(path)]
    try:
        shown = subprocess.run(command, capture_output=True, check=True)
    except FileNotFoundError as e:
        raise UnavailableError("bpftool is not installed") from e
    return list(definitions(json.loads(shown.stdout)["types"]))


def measure(rounds: int, say: Callable[[str], None]) -> Section:
    say("maps: computed")
    maps = scaled(of_object(object_path("tailtrace")), CPUS, THREADS, TENANTS)
    sizes = {each.name: memory(each, CPUS) / 1e6 for each in maps}
    largest = sorted(sizes, key=lambda name: -sizes[name])
    rows = [Row(name, "MB", Spread.exactly(sizes[name])) for name in largest if sizes[name] >= 0.1]
    total = Row("all maps", "MB", Spread.exactly(sum(sizes.values())), _BUDGET_MB)
    return Section("Memory of the maps", _METHOD, [*rows, total])
