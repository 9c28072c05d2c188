"""The areas of a process's address space, and which of them are memory shared with others."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tracer.host.facts import Fact, Known, Unknown, text, value_of
from tracer.memory.pages import PAGE, Addresses

_MOST = 65_530  # areas of a process by default, vm.max_map_count
_LINE = re.compile(
    r"(?P<start>[0-9a-f]+)-(?P<end>[0-9a-f]+) (?P<access>\S{4}) (?P<offset>[0-9a-f]+)"
    r" (?P<major>[0-9a-f]+):(?P<minor>[0-9a-f]+) (?P<inode>\d+) *(?P<path>.*)"
)

# Names of files on mounts inside the kernel, which no mount table shows.
_INSIDE = ("/memfd:", "/SYSV", "/dev/zero", "/anon_hugepage")
_MEMORY_FILESYSTEMS = ("tmpfs", "hugetlbfs")
_MARK_PAGE = "/memfd:stepmark"
_DELETED = " (deleted)"

Device = tuple[int, int]
Identity = tuple[Device, int]
"""Device and inode: the same file, whatever its name."""


@dataclass(frozen=True, slots=True)
class Area:
    """One line of ``/proc/PID/maps``."""

    start: int
    end: int
    access: str
    """Such as ``rw-s``, where ``s`` is shared."""

    offset: int
    """In the file, bytes."""

    identity: Identity
    path: str

    @property
    def pages(self) -> int:
        return (self.end - self.start) // PAGE

    @property
    def is_private(self) -> bool:
        """Anonymous memory of this process alone: heaps, stacks, what allocators map."""
        named = self.path.startswith("[") and self.path not in ("[heap]", "[stack]")
        anonymous = self.identity[1] == 0 and (not named or self.path.startswith("[anon"))
        return anonymous and self.access[3] == "p" and self.access[:3] != "---"


def areas(pid: int, proc: Path = Path("/proc")) -> Fact[tuple[Area, ...]]:
    path = proc / str(pid) / "maps"
    try:
        with path.open(errors="replace") as file:
            lines = list(islice(file, _MOST + 1))
    except FileNotFoundError:
        return Unknown("it has ended")
    except OSError as e:
        return Unknown(f"{path}: {e.strerror}")
    if len(lines) > _MOST:
        return Unknown(f"{path} has more than {_MOST:,} areas")
    return Known(tuple(_parse(lines)), str(path))


def shared_memory(
    all_of_them: Iterable[Area], devices: frozenset[Device]
) -> dict[Identity, tuple[Area, ...]]:
    """
    The areas of each shared segment: POSIX, SysV, memfd, anonymous, and files of these devices.

    Without mark pages, which are the tracer's own.
    """
    found: dict[Identity, list[Area]] = defaultdict(list)
    for area in all_of_them:
        in_memory = area.path.startswith(_INSIDE) or area.identity[0] in devices
        marks = area.path.removesuffix(_DELETED) == _MARK_PAGE
        if area.access[3] == "s" and in_memory and not marks:
            found[area.identity].append(area)
    return {identity: tuple(areas) for identity, areas in found.items()}


def memory_devices(pid: int, proc: Path = Path("/proc")) -> frozenset[Device]:
    """Of the mounts, as this process sees them, whose files are memory: tmpfs and hugetlbfs."""
    mounted = value_of(text(proc / str(pid) / "mountinfo")) or ""
    return frozenset(_devices(mounted.splitlines()))


def addresses_of(parts: Sequence[Area], positions: NDArray[np.int64]) -> Addresses:
    """Of pages by their position in all of these areas, one behind the other."""
    sizes = np.array([area.pages for area in parts], np.int64)
    ends = sizes.cumsum()
    at = ends.searchsorted(positions, side="right")
    starts = np.array([area.start for area in parts], np.uint64)
    within = positions - (ends - sizes)[at]
    return starts[at] + within.astype(np.uint64) * np.uint64(PAGE)


def addresses_in(
    parts: Iterable[Area], positions: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], Addresses]:
    """Which of these pages of a file the areas map, and where; an address for each, 0 if none."""
    addresses = np.zeros(len(positions), np.uint64)
    for area in parts:
        within = positions - area.offset // PAGE
        here = (within >= 0) & (within < area.pages)
        addresses[here] = area.start + within[here] * PAGE
    return addresses > 0, addresses


def _parse(lines: Iterable[str]) -> Iterator[Area]:
    for line in lines:
        if fields := _LINE.fullmatch(line.rstrip("\n")):
            device = int(fields["major"], 16), int(fields["minor"], 16)
            yield Area(
                int(fields["start"], 16),
                int(fields["end"], 16),
                fields["access"],
                int(fields["offset"], 16),
                (device, int(fields["inode"])),
                fields["path"],
            )


def _devices(mountinfo: Iterable[str]) -> Iterator[Device]:
    """See proc_pid_mountinfo(5): the type follows a lone hyphen."""
    for line in mountinfo:
        mount, _, kind = line.partition(" - ")
        if kind.split(" ", 1)[0] in _MEMORY_FILESYSTEMS:
            major, _, minor = mount.split()[2].partition(":")
            yield int(major), int(minor)
