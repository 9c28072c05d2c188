"""Settings of the whole machine that lengthen or shorten tails, and its pressure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tracer.host.facts import Fact, Known, Unknown, convert, cpus, entries, number, text, value_of

_CHOSEN = re.compile(r"\[([^]]+)\]")
_AVERAGE = re.compile(r"^some .*avg60=([0-9.]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class IdleState:
    name: str
    latency_us: int
    """To leave it."""


@dataclass(frozen=True, slots=True)
class Settings:
    isolated: Fact[frozenset[int]]
    nohz_full: Fact[frozenset[int]]
    numa_balancing: Fact[int]
    """0: off."""

    huge_pages: Fact[str]
    """Transparent ones: ``always``, ``madvise``, ``never``."""

    defrag: Fact[str]
    """When a fault may stop to make room for a huge page."""

    governors: Fact[dict[str, int]]
    """Of the CPUs' frequency -> number of CPUs."""

    deepest_idle: Fact[IdleState]
    """The one that takes longest to leave, of those not disabled on the first CPU."""

    cpu_pressure: Fact[float]
    """Part of the last minute, in percent, in which some thread wanted a CPU."""

    memory_pressure: Fact[float]

    @classmethod
    def read(cls, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> Settings:
        cpu, huge = sys / "devices/system/cpu", sys / "kernel/mm/transparent_hugepage"
        return cls(
            isolated=cpus(cpu / "isolated"),
            nohz_full=_nohz_full(cpu / "nohz_full"),
            numa_balancing=number(proc / "sys/kernel/numa_balancing"),
            huge_pages=convert(text(huge / "enabled"), _chosen),
            defrag=convert(text(huge / "defrag"), _chosen),
            governors=_governors(cpu),
            deepest_idle=_deepest_idle(cpu / "cpu0/cpuidle"),
            cpu_pressure=convert(text(proc / "pressure/cpu"), _average),
            memory_pressure=convert(text(proc / "pressure/memory"), _average),
        )


def _nohz_full(path: Path) -> Fact[frozenset[int]]:
    """The kernel writes ``(null)`` for none."""
    written = text(path)
    none = isinstance(written, Known) and written.value == "(null)"
    return Known(frozenset(), str(path)) if none else cpus(path)


def _chosen(options: str) -> str:
    """``madvise`` of ``always [madvise] never``."""
    chosen = _CHOSEN.search(options)
    if not chosen:
        raise ValueError(options)
    return chosen[1]


def _average(pressure: str) -> float:
    average = _AVERAGE.search(pressure)
    if not average:
        raise ValueError(pressure)
    return float(average[1])


def _governors(cpu: Path) -> Fact[dict[str, int]]:
    files = [path / "cpufreq/scaling_governor" for path in entries(cpu, "cpu[0-9]*")]
    counts = Counter(filter(None, (value_of(text(file)) for file in files)))
    if not counts:
        return Unknown("no CPU shows a frequency governor: the firmware or a hypervisor sets it")
    return Known(dict(counts), f"{cpu}/cpu*/cpufreq/scaling_governor")


def _deepest_idle(directory: Path) -> Fact[IdleState]:
    states = [
        IdleState(value_of(text(state / "name")) or state.name, latency)
        for state in entries(directory, "state[0-9]*")
        if not value_of(number(state / "disable"))
        and (latency := value_of(number(state / "latency"))) is not None
    ]
    if not states:
        return Unknown(f"{directory} shows no idle state: the hypervisor or firmware chooses")
    return Known(max(states, key=lambda state: state.latency_us), str(directory))
