"""Accelerators on the PCI bus: on which node each is, and which of them a process has open."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tracer.host.facts import Fact, Known, Unknown, convert, cpus, number, text, value_of

# By class code, include/linux/pci_ids.h: what is made to compute; and what shows pictures, too,
# of makers whose cards compute. A server's console is a display of another maker.
_COMPUTES = ("0x0302", "0x0380", "0x1200")
_DISPLAY, _MAKERS = "0x0300", ("0x10de", "0x1002")

_NVIDIA = re.compile(r"/dev/nvidia(\d+)")
_RENDER = re.compile(r"/dev/dri/(renderD\d+|card\d+)")


@dataclass(frozen=True, slots=True)
class Accelerator:
    address: str
    """As sysfs writes it: ``0000:3b:00.0``."""

    node: Fact[int]
    cpus: Fact[frozenset[int]]
    """Those that the firmware says are near."""

    behind: tuple[str, ...]
    """The bridges on the way to it, from the root of the bus on."""

    @property
    def place(self) -> str:
        """``node 0, behind 0000:3a:00.0``; why its node is not known."""
        node = self.node
        at = f"node {node.value}" if isinstance(node, Known) else f"node unknown: {node.reason}"
        return f"{at}, behind {', '.join(self.behind)}" if self.behind else at


def accelerators(sys: Path = Path("/sys")) -> dict[str, Accelerator]:
    """By address."""
    found = sorted((sys / "bus/pci/devices").glob("*"))
    return {device.name: _accelerator(device) for device in found if _computes(device)}


def opened(pid: int, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> Fact[frozenset[str]]:
    """
    Addresses of the accelerators that a process has open.

    NVIDIA's driver names its devices by a minor number of its own; those of others are render
    nodes. A container's CUDA_VISIBLE_DEVICES renumbers what it sees, never these.
    """
    directory = proc / str(pid) / "fd"
    try:
        targets = [str(file.readlink()) for file in directory.iterdir()]
    except FileNotFoundError:
        return Unknown("it has ended")
    except OSError as e:
        return Unknown(f"{directory}: {e.strerror}")
    nvidia = _nvidia_minors(proc)
    return Known(frozenset(_addresses(targets, nvidia, sys)), str(directory))


def _computes(device: Path) -> bool:
    kind = (value_of(text(device / "class")) or "")[:6]
    maker = value_of(text(device / "vendor"))
    return kind in _COMPUTES or (kind == _DISPLAY and maker in _MAKERS)


def _accelerator(device: Path) -> Accelerator:
    node = number(device / "numa_node")
    if isinstance(node, Known) and node.value < 0:
        node = Unknown(f"{node.source} is {node.value}: the firmware does not tell")
    path = Path(os.path.realpath(device)).parts
    behind = tuple(part for part in path[:-1] if re.fullmatch(r"[0-9a-f]{4}:.*\.\d", part))
    return Accelerator(device.name, node, cpus(device / "local_cpulist"), behind)


def _addresses(targets: list[str], nvidia: dict[int, str], sys: Path) -> Iterator[str]:
    for target in targets:
        if (card := _NVIDIA.fullmatch(target)) and int(card[1]) in nvidia:
            yield nvidia[int(card[1])]
        elif node := _RENDER.fullmatch(target):
            yield Path(os.path.realpath(sys / "class/drm" / node[1] / "device")).name


def _nvidia_minors(proc: Path) -> dict[int, str]:
    """Minor number -> address, as the driver's own files say."""
    found = {}
    for directory in sorted((proc / "driver/nvidia/gpus").glob("*")):
        minor = convert(text(directory / "information"), _minor)
        if isinstance(minor, Known):
            found[minor.value] = directory.name.lower()
    return found


def _minor(information: str) -> int:
    fields = dict(line.split(":", 1) for line in information.splitlines() if ":" in line)
    return int(fields.get("Device Minor", ""))
