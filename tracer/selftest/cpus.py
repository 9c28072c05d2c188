"""Which CPUs the selftest may disturb: those that no traced process has to itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tracer.errors import UnavailableError
from tracer.host.facts import cpus, format_cpus, number, value_of
from tracer.host.hierarchy import chain, groups_of, mount_point
from tracer.host.threads import allowed
from tracer.model import Target


def undisturbed(targets: Iterable[Target]) -> frozenset[int]:
    """
    The CPUs that we may use and nobody has exclusively.

    Raises UnavailableError when there is none.
    """
    ours = frozenset(os.sched_getaffinity(0))
    pinned = {target: pinned_to(_threads(target.pid), ours) for target in targets}
    free = ours.difference(*pinned.values(), exclusive())
    if free:
        return free
    holders = ", ".join(f"{t.name} ({t.pid})" for t, on in pinned.items() if on)
    raise UnavailableError(
        f"every CPU that the selftest may use ({format_cpus(ours)}) is another's alone: "
        f"{holders or 'exclusive cpusets'}; --anyway disturbs them for seconds each"
    )


def pinned_to(threads: Iterable[frozenset[int]], ours: frozenset[int]) -> frozenset[int]:
    """
    The CPUs that threads have to themselves, given where each may run: one that is pinned to a
    single CPU, or to a part of ours. Those that may run wherever we may are in the same pool.
    """
    return frozenset().union(*(on for on in threads if len(on) == 1 or not on >= ours))


def _threads(pid: int) -> Iterable[frozenset[int]]:
    return [each.cpus for each in value_of(allowed(pid)) or ()]


def exclusive(sys: Path = Path("/sys")) -> frozenset[int]:
    """
    The CPUs of exclusive v1 cpusets other than our own; v2 takes its partitions' CPUs from all
    others by itself.
    """
    groups = value_of(groups_of(os.getpid())) or {}
    root = mount_point(groups, "cpuset", sys)
    own = {root, *(value_of(chain(groups, "cpuset", sys)) or ())}
    flags = [flag for flag in root.rglob("cpuset.cpu_exclusive") if flag.parent not in own]
    held = [flag.parent for flag in flags if value_of(number(flag)) == 1]
    return frozenset().union(*(value_of(cpus(group / "cpuset.cpus")) or () for group in held))
