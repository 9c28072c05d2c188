"""
Whether the node's agent gives containers CPUs of their own: its state file.

Other tools are told not to rely on these files, so threads' own allowed CPUs are asked first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from tracer.host.facts import Fact, convert, parse_cpus, text


@dataclass(frozen=True, slots=True)
class CpuManager:
    policy: str
    """``static`` gives CPUs of their own to pods that ask for whole ones; ``none`` to nobody."""

    shared: frozenset[int]
    exclusive: frozenset[int]


class _State(msgspec.Struct, rename="camel"):
    policy_name: str
    default_cpu_set: str = ""
    entries: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    """Pod -> container -> its own CPUs."""


def cpu_manager(proc: Path = Path("/proc")) -> Fact[CpuManager]:
    """Through the first process's root, which is the host's when its processes are visible."""
    return convert(text(proc / "1/root/var/lib/kubelet/cpu_manager_state"), _parse)


def _parse(state: str) -> CpuManager:
    try:
        content = msgspec.json.decode(state, type=_State)
    except msgspec.DecodeError as e:
        raise ValueError(state) from e
    containers = [cpus for pod in content.entries.values() for cpus in pod.values()]
    return CpuManager(
        content.policy_name,
        parse_cpus(content.default_cpu_set),
        frozenset().union(*map(parse_cpus, containers)),
    )
