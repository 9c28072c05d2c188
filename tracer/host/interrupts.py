"""Device interrupts: on which CPUs they may arrive, and how many have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tracer.host.facts import Fact, Known, Unknown, convert, cpus, text


@dataclass(frozen=True, slots=True)
class Interrupt:
    number: int
    name: str
    cpus: Fact[frozenset[int]]
    """Where it arrives now."""

    counts: dict[int, int]
    """By CPU, since boot."""


def interrupts(proc: Path = Path("/proc")) -> Fact[tuple[Interrupt, ...]]:
    """Those of devices; the timer's and those between CPUs have no affinity to set."""
    return convert(text(proc / "interrupts"), lambda table: tuple(_parse(table, proc)))


def arriving_on(all_of_them: tuple[Interrupt, ...], cpu_set: frozenset[int]) -> list[Interrupt]:
    """Those that have arrived on these CPUs and still may, the most frequent first."""

    def count(each: Interrupt) -> int:
        return sum(n for cpu, n in each.counts.items() if cpu in cpu_set)

    here = [i for i in all_of_them if isinstance(i.cpus, Known) and i.cpus.value & cpu_set]
    return sorted(filter(count, here), key=count, reverse=True)


def _parse(table: str, proc: Path) -> Iterator[Interrupt]:
    """The header names the CPUs online; a row is NUMBER: COUNT... CHIP NAME."""
    header, *rows = table.splitlines()
    numbers = [int(name.removeprefix("CPU")) for name in header.split()]
    for row in rows:
        label, _, rest = row.partition(":")
        fields = rest.split()
        if label.strip().isdigit() and len(fields) > len(numbers):
            counts = dict(zip(numbers, map(int, fields), strict=False))
            number = int(label)
            yield Interrupt(number, fields[-1], _affinity(proc / "irq" / str(number)), counts)


def _affinity(directory: Path) -> Fact[frozenset[int]]:
    effective = cpus(directory / "effective_affinity_list")
    return cpus(directory / "smp_affinity_list") if isinstance(effective, Unknown) else effective
