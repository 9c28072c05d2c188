"""
Cgroups: which container a process is in, and which group an id of the CPU controller stands for.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tracer.host.hierarchy import mount_point, parse_groups, path_of
from tracer.targets.pods import FindPod

_RUNTIMES = {
    "cri-containerd": "containerd",
    "containerd": "containerd",
    "crio": "cri-o",
    "docker": "docker",
    "libpod": "podman",
    "nerdctl": "containerd",
}
# systemd driver `docker-ID.scope`, cgroupfs driver `docker/ID` or plain `ID`, containerd's mixed
# form `...slice:cri-containerd:ID`. `crio-conmon-ID` is a monitor, not the container.
_CONTAINER = re.compile(rf"(?:^|[/:])(?:({'|'.join(_RUNTIMES)})[-:/])?([0-9a-f]{{64}})(?![0-9a-f])")
# The systemd driver writes `_` for `-`. The pod of a static manifest has a hash instead of an id.
_POD = re.compile(
    r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?![0-9a-f])"
)
_PREFERRED = ("cpu", "memory", "")  # controllers; "" is the unified hierarchy

_MAX_GROUPS = 10_000
_REFRESH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Container:
    id: str
    """64 hexadecimal digits; empty for a process in a pod's own group."""

    runtime: str
    """``containerd``, ``cri-o``, ``docker``, ``podman``; empty when the path does not tell."""

    pod: str = ""
    """The pod's uid; empty outside of Kubernetes."""

    @property
    def name(self) -> str:
        return f"{self.runtime or 'container'}:{self.id[:12]}" if self.id else f"pod:{self.pod}"


def identify(text: str) -> Container | None:
    """The container that ``/proc/PID/cgroup`` tells of, the innermost of nested ones."""
    by_controllers = parse_groups(text)
    preferred = [path_of(by_controllers, controller) for controller in _PREFERRED]
    found = map(_container_in, filter(None, [*preferred, *by_controllers.values()]))
    return next((container for container in found if container), None)


def _container_in(path: str) -> Container | None:
    containers, pods = _CONTAINER.findall(path), _POD.findall(path)
    if not containers and not pods:
        return None
    runtime, container = containers[-1] if containers else ("", "")
    pod = pods[-1].replace("_", "-") if pods else ""
    return Container(container, _RUNTIMES.get(runtime, ""), pod)


class Cgroups:
    """
    The groups of the CPU controller, by the inode of their directory: the id that the kernel side
    sees. On a host with both versions that is the v1 hierarchy which has the controller.
    """

    def __init__(
        self,
        proc: Path = Path("/proc"),
        sys: Path = Path("/sys"),
        find_pod: FindPod = lambda uid: None,
    ) -> None:
        self._proc = proc
        self._find_pod = find_pod
        self._root = mount_point(parse_groups(_text(proc / "self/cgroup")), "cpu", sys)
        self._known: dict[int, Container | None] = {}
        self._walked = float("-inf")

    def cgroup_id(self, pid: int) -> int | None:
        """The id of a process's group; None when it is gone or lies outside of what we see."""
        by_controllers = parse_groups(_text(self._proc / str(pid) / "cgroup"))
        path = path_of(by_controllers, "cpu") or by_controllers.get("")
        if path is None or ".." in path.split("/"):
            return None
        directory = self._root / path.lstrip("/")
        # In v2 the controller may end above the process: the nearest group that has it counts.
        while directory != self._root and not _has_cpu_controller(directory):
            directory = directory.parent
        return _inode(directory)

    def name_of(self, cgroup_id: int) -> str | None:
        """
        The pod that a group belongs to, else its container; None for a group of no container.

        Containers that are gone keep their names, because what they did outlives them.
        """
        if cgroup_id not in self._known and time.monotonic() - self._walked >= _REFRESH_SECONDS:
            self._walked = time.monotonic()
            known = self._known | dict(islice(self._walk(), _MAX_GROUPS))
            self._known = dict(list(known.items())[-_MAX_GROUPS:])
        container = self._known.get(cgroup_id)
        if container is None:
            return None
        pod = self._find_pod(container.pod)
        return pod.full_name if pod else container.name

    def _walk(self) -> Iterator[tuple[int, Container | None]]:
        for directory, _, _ in os.walk(self._root):
            inode = _inode(Path(directory))
            if inode is not None:
                yield inode, _container_in(directory.removeprefix(str(self._root)))


def _has_cpu_controller(directory: Path) -> bool:
    return any((directory / file).exists() for file in ("cpu.weight", "cpu.shares"))


def _text(path: Path) -> str:
    """Empty when the process is gone."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None
