"""
Finding and opening the mark page of a process that may be hostile.

Every way in which that can fail has a name. Nothing here follows a path into a file system that a
stranger controls: such a file could block its reader for ever.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from tracer.errors import TailtraceError

_NAME = "/memfd:stepmark (deleted)"
_MAX_PAGES = 4


class Reason(StrEnum):
    """Why a mark page is not read. Names are exported as they are."""

    NO_PAGE = "no_page"
    GONE = "gone"
    UNREADABLE = "unreadable"
    NOT_MEMFD = "not_memfd"
    TIME_NAMESPACE = "time_namespace"
    INHERITED = "inherited"
    BAD_MAGIC = "bad_magic"
    BAD_VERSION = "bad_version"
    BAD_SIZE = "bad_size"
    TRUNCATED = "truncated"


class Refused(TailtraceError):  # noqa: N818 - a state of the page, not a fault of ours
    """The marks of a process are not read, for a reason that has a name."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"mark page refused ({reason}): {detail}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Location:
    """Where a process has its mark page."""

    start: int
    """User virtual address of the page's first byte."""

    end: int
    inode: int


def locate(pid: int, proc: Path) -> list[Location]:
    """
    The mappings of memfds named ``stepmark`` from their first byte on, a few at most.

    There is more than one where a forked child has not let go of its parent's. Raises Refused.
    """
    found = []
    name = f" {_NAME}\n".encode()
    with _refusing(pid, "maps"), (proc / str(pid) / "maps").open("rb") as maps:
        for line in maps:
            if line.endswith(name):
                addresses, _, offset, _, inode, _ = line.split(None, 5)
                start, _, end = addresses.partition(b"-")
                if int(offset, 16) == 0:
                    found.append(Location(int(start, 16), int(end, 16), int(inode)))
    return found[:_MAX_PAGES]


@contextmanager
def _refusing(pid: int, what: str) -> Iterator[None]:
    """What the system says about the files of a process, as a reason."""
    try:
        yield
    except (FileNotFoundError, ProcessLookupError) as e:
        raise Refused(Reason.GONE, f"process {pid} has ended") from e
    except OSError as e:
        raise Refused(Reason.UNREADABLE, f"{what} of process {pid}: {e.strerror}") from e


def open_memfd(pid: int, location: Location, proc: Path) -> int:
    """
    A descriptor for reading the mapped file. Raises Refused.

    ``map_files`` needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN; without, the process's own
    descriptors are searched, which it may have closed.
    """
    with _refusing(pid, "mark page"):
        for path in _paths(proc / str(pid), location):
            try:
                descriptor = _open_for_reading(path)
            except (PermissionError, FileNotFoundError):
                continue
            if os.fstat(descriptor).st_ino == location.inode:
                return descriptor
            os.close(descriptor)
    raise Refused(Reason.UNREADABLE, f"process {pid} has no descriptor of it that we may open")


def _paths(process: Path, location: Location) -> Iterator[Path]:
    yield process / "map_files" / f"{location.start:x}-{location.end:x}"
    for path in (process / "fd").iterdir():
        if str(path.readlink()) == _NAME:
            yield path


def _open_for_reading(path: Path) -> int:
    # A descriptor with O_PATH asks nothing of the file's file system.
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if _mount_of(handle) != _memfd_mount():
            raise Refused(Reason.NOT_MEMFD, f"{path} has the name of a memfd and is none")
        return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(handle)


def _mount_of(descriptor: int) -> str:
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
    return next(line for line in lines if line.startswith("mnt_id:"))


@cache
def _memfd_mount() -> str:
    """The kernel's internal mount that all memfds lie on."""
    descriptor = os.memfd_create("tailtrace", os.MFD_CLOEXEC)
    try:
        return _mount_of(descriptor)
    finally:
        os.close(descriptor)


def require_our_clock(pid: int, proc: Path) -> None:
    """
    Raises Refused when the process's CLOCK_MONOTONIC is not ours.

    ``timens_offsets`` tells of the namespace that children get; it is the process's own unless
    ``ns/time`` is the same as ours.
    """
    own, theirs = proc / "self/ns/time", proc / str(pid) / "ns/time"
    with _refusing(pid, "time namespace"):
        if not own.is_symlink() or own.readlink() == theirs.readlink():
            return
        lines = (proc / str(pid) / "timens_offsets").read_text().splitlines()
    offsets = {clock: (seconds, ns) for clock, seconds, ns in (line.split() for line in lines)}
    if offsets["monotonic"] != ("0", "0"):
        raise Refused(
            Reason.TIME_NAMESPACE, f"the clock of process {pid} is {offsets['monotonic'][0]} s off"
        )


def number_in_own_namespace(pid: int, proc: Path) -> int:
    """The pid that the process itself sees. Raises Refused when it is gone."""
    with _refusing(pid, "status"):
        lines = (proc / str(pid) / "status").read_text(errors="replace").splitlines()
    return int(next(line for line in lines if line.startswith("NSpid:")).split()[-1])
