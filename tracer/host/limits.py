"""Budgets that stop a runnable thread: the CFS quota of its groups, and real-time budgets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tracer.host.facts import Fact, Known, Unknown, convert, entries, number, text, value_of
from tracer.host.hierarchy import Groups, chain


@dataclass(frozen=True, slots=True)
class Quota:
    """CPU time that a group may use in each period, CFS bandwidth."""

    group: str
    """Its path below the place where control groups are mounted."""

    quota_us: int
    period_us: int
    periods: Fact[int]
    """Since the group exists: those in which it ran, and those in which it was stopped."""

    throttled: Fact[int]

    @property
    def cpus(self) -> float:
        return self.quota_us / self.period_us


@dataclass(frozen=True, slots=True)
class RealtimeBudget:
    """CPU time that real-time threads may use in each period, on each CPU."""

    runtime_us: int
    """-1: without limit."""

    period_us: int

    @property
    def pause_us(self) -> int:
        """How long a real-time thread that never sleeps is stopped in each period."""
        return 0 if self.runtime_us < 0 else max(0, self.period_us - self.runtime_us)


def quotas(groups: Groups, sys: Path = Path("/sys")) -> Fact[tuple[Quota, ...]]:
    """Of the process's group and those around it, innermost first; empty when none has one."""
    directories = chain(groups, "cpu", sys)
    if isinstance(directories, Unknown):
        return directories
    found = (_quota(directory) for directory in directories.value)
    return Known(tuple(filter(None, found)), str(directories.value[0]))


def group_realtime(groups: Groups, sys: Path = Path("/sys")) -> Fact[RealtimeBudget]:
    """Of the process's own group. Version 2 of cgroups has none, the global budget alone counts."""
    directories = chain(groups, "cpu", sys)
    if isinstance(directories, Unknown):
        return directories
    innermost = directories.value[0]
    return _budget(innermost / "cpu.rt_runtime_us", innermost / "cpu.rt_period_us")


def global_realtime(proc: Path = Path("/proc")) -> Fact[RealtimeBudget]:
    """Enforced up to Linux 6.11, and later with CONFIG_RT_GROUP_SCHED; else the fair server is."""
    kernel = proc / "sys/kernel"
    return _budget(kernel / "sched_rt_runtime_us", kernel / "sched_rt_period_us")


def fair_server(sys: Path = Path("/sys")) -> Fact[RealtimeBudget]:
    """What real-time threads are left by the server for starving others, since Linux 6.12."""
    directory = sys / "kernel/debug/sched/fair_server"
    cpu = next(iter(entries(directory, "cpu[0-9]*")), None)
    if cpu is None:
        return Unknown(f"{directory} cannot be read: before Linux 6.12, or debugfs is locked")
    runtime, period = number(cpu / "runtime"), number(cpu / "period")
    if isinstance(period, Unknown):
        return period
    whole = period.value
    return convert(runtime, lambda served: RealtimeBudget((whole - served) // 1000, whole // 1000))


def _budget(runtime_file: Path, period_file: Path) -> Fact[RealtimeBudget]:
    runtime, period = number(runtime_file), number(period_file)
    if isinstance(period, Unknown):
        return period
    return convert(runtime, lambda us: RealtimeBudget(us, period.value))


def _quota(directory: Path) -> Quota | None:
    """Version 2 writes ``cpu.max``: QUOTA PERIOD; version 1 has a file for each."""
    both = text(directory / "cpu.max")
    if isinstance(both, Known):
        first, _, second = both.value.partition(" ")
        quota, period = (-1 if first == "max" else int(first)), int(second)
    else:
        quota = value_of(number(directory / "cpu.cfs_quota_us")) or -1
        period = value_of(number(directory / "cpu.cfs_period_us")) or 0
    if quota < 0 or period <= 0:
        return None
    stat = text(directory / "cpu.stat")
    group = str(directory).partition("fs/cgroup")[2]
    return Quota(group, quota, period, _counter(stat, "nr_periods"), _counter(stat, "nr_throttled"))


def _counter(stat: Fact[str], name: str) -> Fact[int]:
    return convert(stat, lambda s: int(dict(line.split() for line in s.splitlines()).get(name, "")))
