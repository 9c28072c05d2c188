"""The machine a table was measured on, by its properties: never by a name or a path."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Machine:
    kernel: str
    cpu: str
    cpus: int
    memory_gib: float
    is_virtual: bool
    python: str

    def __str__(self) -> str:
        kind = "virtual" if self.is_virtual else "physical"
        return (
            f"Linux {self.kernel}, {self.cpus} CPUs ({self.cpu}), {kind}, "
            f"{self.memory_gib:.0f} GiB of memory, Python {self.python}"
        )


def machine(proc: Path = Path("/proc")) -> Machine:
    fields = (line.partition(":") for line in (proc / "cpuinfo").read_text().splitlines())
    cpuinfo = {key.strip(): value.strip() for key, _, value in fields}
    return Machine(
        kernel=platform.release(),
        cpu=cpuinfo.get("model name", platform.machine()),
        cpus=len(os.sched_getaffinity(0)),
        memory_gib=psutil.virtual_memory().total / 2**30,
        is_virtual="hypervisor" in cpuinfo.get("flags", "").split(),
        python=platform.python_version(),
    )


class Disturbance:
    """What else happened on the machine since this was made."""

    def __init__(self) -> None:
        self._before = psutil.cpu_times()
        self._load = os.getloadavg()[0]

    def __str__(self) -> str:
        """
        The load average before, because the one after is our own load's; and the share of CPU time
        that the hypervisor took.
        """
        now, before = psutil.cpu_times(), self._before
        steal = (now.steal - before.steal) / max(sum(now) - sum(before), 1e-9)
        return (
            f"load average {self._load:.1f} before it began; "
            f"{steal:.1%} of the CPU time was stolen by the hypervisor"
        )
