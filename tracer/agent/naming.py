"""
Names for what the kernel side knows by number: tenants by slot, runners by thread and group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from tracer.ledger.labels import pool_of
from tracer.model import Records, Target
from tracer.targets.cgroups import Cgroups
from tracer.targets.text import visible


class RunnerNames:
    """``struct runner`` -> the name under which it is blamed."""

    def __init__(self, target_of: Callable[[int], Target | None], cgroups: Cgroups) -> None:
        """``target_of`` tells the target with this pid."""
        self._target_of, self._cgroups = target_of, cgroups

    def __call__(self, runners: Records) -> Sequence[str]:
        """
        For each of (n,): a target's tenant, with the pool of the thread unless it is the process's
        main one; else the container; else the pool.
        """
        columns = (runners[name].tolist() for name in ("comm", "tgid", "cgroup_id"))
        return [self._name(*runner) for runner in zip(*columns, strict=True)]

    def _name(self, comm: bytes, tgid: int, cgroup_id: int) -> str:
        pool = _pool(comm)
        target = self._target_of(tgid)
        if target:
            return target.tenant if pool == pool_of(target.name) else f"{target.tenant}/{pool}"
        return self._cgroups.name_of(cgroup_id) or pool


@lru_cache(maxsize=1024)
def _pool(comm: bytes) -> str:
    """The same threads are named over and over."""
    return pool_of(visible(comm))
