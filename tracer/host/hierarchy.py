"""Where a process's control groups lie, in cgroup v1, v2 and hosts that have both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tracer.host.facts import Fact, Known, Unknown, convert, text

Groups = Mapping[str, str]
"""Controllers joined by commas -> path; ``""`` is the unified hierarchy."""


def groups_of(pid: int, proc: Path = Path("/proc")) -> Fact[Groups]:
    return convert(text(proc / str(pid) / "cgroup"), parse_groups)


def parse_groups(listed: str) -> Groups:
    """``/proc/PID/cgroup``, see cgroups(7)."""
    rows = (line.split(":", 2) for line in listed.splitlines())
    return {controllers: path for _, controllers, path in (r for r in rows if len(r) == 3)}


def chain(groups: Groups, controller: str, sys: Path = Path("/sys")) -> Fact[list[Path]]:
    """The directories of the group that a controller sees, innermost first, the root included."""
    v1 = next((names for names in groups if controller in names.split(",")), None)
    path = groups.get(v1 or "")
    if path is None:
        return Unknown(f"no cgroup hierarchy with the controller {controller}")
    if ".." in path.split("/"):
        return Unknown(f"the group {path} lies outside of this cgroup namespace")
    root = mount_point(sys, v1, controller)
    innermost = root / path.lstrip("/")
    if not innermost.is_dir():
        return Unknown(f"{innermost} does not exist: the group is not mounted here")
    return Known([innermost, *innermost.parents][: len(innermost.parts) - len(root.parts) + 1])


def mount_point(sys: Path, v1: str | None, controller: str) -> Path:
    """As distributions mount them: v1 under its controllers' names, v2 beside or in their place."""
    mounted = sys / "fs/cgroup"
    candidates = [mounted / v1, mounted / controller] if v1 else [mounted / "unified"]
    return next((path for path in candidates if path.is_dir()), mounted)
