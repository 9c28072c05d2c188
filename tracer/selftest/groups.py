"""A CPU cgroup of its own for a victim, on v1 and v2 hosts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tracer.errors import UnavailableError
from tracer.host.facts import value_of
from tracer.host.hierarchy import groups_of, mount_point

PERIOD_US = 100_000
RT_PERIOD_US = 1_000_000
_PREFIX = "tailtrace-selftest-"


def controller_root() -> Path:
    """The top directory that we see of the CPU controller's hierarchy."""
    return mount_point(value_of(groups_of(os.getpid())) or {}, "cpu")


def has_rt_budget() -> bool:
    """Whether groups have a real-time budget each: v1 with CONFIG_RT_GROUP_SCHED."""
    return (controller_root() / "cpu.rt_runtime_us").exists()


@contextmanager
def cpu_group(quota: float | None = None, rt_budget: float | None = None) -> Iterator[CpuGroup]:
    """
    A new group with a CFS quota (in CPUs) or a real-time budget (share of a CPU), removed at the
    end: its processes must have ended by then.

    Raises UnavailableError when this machine allows no such group.
    """
    group = CpuGroup(controller_root() / f"{_PREFIX}{os.getpid()}")
    group.make()
    try:
        if quota is not None:
            group.limit(quota)
        if rt_budget is not None:
            group.write("cpu.rt_runtime_us", int(rt_budget * RT_PERIOD_US))
        yield group
    finally:
        group.directory.rmdir()


class CpuGroup:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def make(self) -> None:
        try:
            self.directory.mkdir()
        except OSError as e:
            raise UnavailableError(f"no cgroup can be made here: {e}") from None

    def limit(self, quota: float) -> None:
        """Set the CFS quota, in CPUs."""
        quota_us = int(quota * PERIOD_US)
        if (self.directory / "cpu.cfs_quota_us").exists():
            self.write("cpu.cfs_period_us", PERIOD_US)
            self.write("cpu.cfs_quota_us", quota_us)
        else:
            self.write("cpu.max", f"{quota_us} {PERIOD_US}")

    def lift(self) -> None:
        """End the CFS quota."""
        v1 = self.directory / "cpu.cfs_quota_us"
        self.write(*(("cpu.cfs_quota_us", -1) if v1.exists() else ("cpu.max", "max")))

    def add(self, pid: int) -> None:
        self.write("cgroup.procs", pid)

    def stat(self) -> dict[str, int]:
        """``cpu.stat``: among others ``nr_throttled``, the periods in which the quota ran out."""
        lines = (line.split() for line in (self.directory / "cpu.stat").read_text().splitlines())
        return {name: int(value) for name, value in lines}

    def throttled_seconds(self) -> float:
        """For how long the group was held, added up over the CPUs."""
        stat = self.stat()
        v1, v2 = stat.get("throttled_time", 0), stat.get("throttled_usec", 0)
        return v1 / 1e9 + v2 / 1e6

    def write(self, file: str, value: object) -> None:
        try:
            with (self.directory / file).open("r+") as opened:  # never creates one
                opened.write(str(value))
        except OSError as e:
            raise UnavailableError(f"{self.directory / file} takes no {value}: {e}") from None


def remove_stale_groups() -> None:
    """Remove what was left behind by those who were killed; what is still in use remains."""
    for directory in controller_root().glob(f"{_PREFIX}*"):
        pid = directory.name.removeprefix(_PREFIX)
        if not Path("/proc", pid).exists():
            with suppress(OSError):
                directory.rmdir()
