"""Where the threads of a process may run, and from which nodes their memory comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tracer.host.facts import Fact, Known, Unknown, entries, text, value_of
from tracer.host.threads import Allowed, parse_allowed
from tracer.host.topology import Node, nodes_of
from tracer.memory.numa_maps import policy_of_thread


@dataclass(frozen=True, slots=True)
class Placed:
    """What threads of one kind are bound to."""

    allowed: Allowed
    """CPUs to run on, and nodes to allocate from: of affinity and cpuset together."""

    runs_on: frozenset[int]
    """The nodes of those CPUs."""

    policy: Fact[str]


def pinning(
    pid: int, nodes: Iterable[Node], proc: Path = Path("/proc")
) -> Fact[tuple[tuple[Placed, int], ...]]:
    """Each kind of binding with the number of threads that have it, the most frequent first."""
    known_nodes = tuple(nodes)
    found: Counter[Placed] = Counter()
    for thread in entries(proc / str(pid) / "task", "[0-9]*"):
        status = value_of(text(thread / "status"))
        if status is not None:  # else it ended meanwhile
            allowed = parse_allowed(status)
            runs_on = nodes_of(known_nodes, allowed.cpus)
            found[Placed(allowed, runs_on, policy_of_thread(thread))] += 1
    if not found:
        return Unknown(f"process {pid} has no thread that can be read")
    return Known(tuple(found.most_common()), f"{proc}/{pid}/task/*")
