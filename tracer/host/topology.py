"""Sockets, cores, threads, NUMA nodes and last-level caches, as sysfs shows them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tracer.host.facts import (
    Fact,
    Known,
    Unknown,
    convert,
    cpus,
    entries,
    number,
    text,
    value_of,
)

Cpus = frozenset[int]


@dataclass(frozen=True, slots=True)
class Node:
    number: int
    cpus: Cpus
    """Empty for a node of memory alone."""

    memory_bytes: Fact[int]


@dataclass(frozen=True, slots=True)
class Cache:
    level: int
    size_bytes: Fact[int]
    cpus: Cpus
    """Those that share it."""


@dataclass(frozen=True, slots=True)
class Topology:
    """CPUs are those online; what is offline has no place in sysfs."""

    online: Fact[Cpus]
    possible: Fact[Cpus]
    """Online CPUs and those that could be added while the system runs."""

    sockets: Fact[tuple[Cpus, ...]]
    cores: Fact[tuple[Cpus, ...]]
    """Each core's hardware threads."""

    nodes: Fact[tuple[Node, ...]]
    last_caches: Fact[tuple[Cache, ...]]
    """The outermost level of data caches, each cache once."""

    @classmethod
    def read(cls, sys: Path = Path("/sys")) -> Topology:
        directory = sys / "devices/system/cpu"
        online = cpus(directory / "online")
        present = {cpu: directory / f"cpu{cpu}" for cpu in sorted(value_of(online) or ())}
        return cls(
            online=online,
            possible=cpus(directory / "possible"),
            sockets=_sockets(present),
            cores=_cores(present),
            nodes=_nodes(sys / "devices/system/node"),
            last_caches=_last_caches(present),
        )

    @property
    def cores_per_socket(self) -> Fact[int]:
        """Of the largest socket."""
        if isinstance(self.sockets, Unknown) or isinstance(self.cores, Unknown):
            return next(f for f in (self.sockets, self.cores) if isinstance(f, Unknown))
        cores = self.cores.value
        sizes = [sum(1 for core in cores if core <= socket) for socket in self.sockets.value]
        return Known(max(sizes), self.cores.source)

    @property
    def threads_per_core(self) -> Fact[int]:
        return convert(self.cores, lambda cores: max(map(len, cores)))


def nodes_of(nodes: Iterable[Node], cpus: Cpus) -> Cpus:
    """The nodes on which these CPUs lie."""
    return frozenset(node.number for node in nodes if node.cpus & cpus)


def _sockets(present: dict[int, Path]) -> Fact[tuple[Cpus, ...]]:
    """By ``physical_package_id``; -1 is the kernel's word for not knowing."""
    members: dict[int, set[int]] = defaultdict(set)
    for cpu, directory in present.items():
        package = number(directory / "topology/physical_package_id")
        if isinstance(package, Unknown):
            return package
        if package.value < 0:
            return Unknown(f"{package.source} is {package.value}: the firmware does not tell")
        members[package.value].add(cpu)
    return _groups(members.values(), "physical_package_id of every CPU")


def _cores(present: dict[int, Path]) -> Fact[tuple[Cpus, ...]]:
    found = set()
    for directory in present.values():
        # The older name of core_cpus_list, which kernels before 5.3 do not have.
        siblings = cpus(directory / "topology/thread_siblings_list")
        if isinstance(siblings, Unknown):
            return siblings
        found.add(siblings.value)
    return _groups(found, "thread_siblings_list of every CPU")


def _nodes(directory: Path) -> Fact[tuple[Node, ...]]:
    found = [
        Node(
            int(path.name.removeprefix("node")),
            value_of(cpus(path / "cpulist")) or frozenset(),
            convert(text(path / "meminfo"), _total_bytes),
        )
        for path in entries(directory, "node[0-9]*")
    ]
    if not found:
        return Unknown(f"{directory} has no node: a kernel without NUMA, or sysfs is not mounted")
    return Known(tuple(found), str(directory))


def _last_caches(present: dict[int, Path]) -> Fact[tuple[Cache, ...]]:
    found: dict[tuple[int, Cpus], Path] = {}
    for directory in present.values():
        for index in entries(directory / "cache", "index[0-9]*"):
            level, shared = number(index / "level"), cpus(index / "shared_cpu_list")
            if isinstance(level, Known) and isinstance(shared, Known):
                found.setdefault((level.value, shared.value), index)
    if not found:
        return Unknown("sysfs shows no cache")
    last = max(level for level, _ in found)
    return Known(
        tuple(
            Cache(level, convert(text(index / "size"), _size_bytes), shared)
            for (level, shared), index in found.items()
            if level == last
        ),
        "cache/index*/shared_cpu_list of every CPU",
    )


def _groups(members: Iterable[Iterable[int]], source: str) -> Fact[tuple[Cpus, ...]]:
    found = sorted(map(frozenset, members), key=min)
    return Known(tuple(found), source) if found else Unknown("no CPU is known to be online")


def _total_bytes(meminfo: str) -> int:
    """``Node 0 MemTotal:  6645964 kB`` of a node's meminfo."""
    line = next((line for line in meminfo.splitlines() if "MemTotal:" in line), "")
    return int(line.split()[-2]) * 1024


def _size_bytes(size: str) -> int:
    return int(size.removesuffix("K")) * 1024
