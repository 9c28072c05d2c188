"""A CPU cgroup of its own for a process, on v1 and v2 hosts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PERIOD_US = 100_000
RT_PERIOD_US = 1_000_000
V1 = Path("/sys/fs/cgroup/cpu")
V2 = Path("/sys/fs/cgroup")


@contextmanager
def cpu_group(
    pid: int, quota: float | None = None, rt_budget: float | None = None
) -> Iterator[Path]:
    """
    Move a process into a new group with a CFS quota (in CPUs) or a real-time budget (share of a
    CPU), and remove the group when the process has ended.
    """
    root = V1 if V1.exists() else V2
    group = root / f"tailtrace-test-{pid}"
    group.mkdir()
    try:
        if quota is not None and root is V1:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(int(quota * PERIOD_US)))
        elif quota is not None:
            (group / "cpu.max").write_text(f"{int(quota * PERIOD_US)} {PERIOD_US}")
        if rt_budget is not None:
            (group / "cpu.rt_runtime_us").write_text(str(int(rt_budget * RT_PERIOD_US)))
        (group / "cgroup.procs").write_text(str(pid))
        yield group
    finally:
        group.rmdir()
