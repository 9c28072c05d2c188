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


def path_of(groups: Groups, controller: str) -> str | None:
    """The path in the v1 hierarchy with a controller; with ``""``, in the unified one."""
    return next((path for names, path in groups.items() if controller in names.split(",")), None)


def mount_point(groups: Groups, controller: str, sys: Path = Path("/sys")) -> Path:
    """As distributions mount them: v1 under its controllers' names, v2 beside or in their place."""
    mounted = sys / "fs/cgroup"
    v1 = next((names for names in groups if controller in names.split(",")), None)
    candidates = [mounted / v1, mounted / controller] if v1 else [mounted / "unified"]
    return next((path for path in candidates if path.is_dir()), mounted)


def chain(groups: Groups, controller: str, sys: Path = Path("/sys")) -> Fact[list[Path]]:
    """The directories of the group that a controller sees, innermost first, the root included."""
    path = path_of(groups, controller) or groups.get("")
    if path is None:
        return Unknown(f"no cgroup hierarchy with the controller {controller}")
    if ".." in path.split("/"):
        return Unknown(f"the group {path} lies outside of this cgroup namespace")
    root = mount_point(groups, controller, sys)
    innermost = root / path.lstrip("/")
    if not innermost.is_dir():
        return Unknown(f"{innermost} does not exist: the group is not mounted here")
    return Known([innermost, *innermost.parents][: len(innermost.parts) - len(root.parts) + 1])
