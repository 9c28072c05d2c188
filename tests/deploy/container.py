"""The built image, run by podman as the DaemonSet says: its capabilities, mounts and limits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.deploy.agent import Outcome, outcome
from tests.deploy.manifests import ROOT, capabilities, container

IMAGE = "localhost/tailtrace"
_STORAGE = ROOT / "build/image"
_DEFAULT_SECCOMP = Path("/usr/share/containers/seccomp.json")

PODMAN = [
    "podman",
    "--log-level=fatal",  # about timers of health checks, which need systemd
    "--storage-driver=overlay",
    f"--root={_STORAGE}/storage",
    f"--runroot={_STORAGE}/run",
    "--cgroup-manager=cgroupfs",
    "--runtime=runc",
]


def seccomp(directory: Path, allows_bpf: bool) -> Path:
    """
    The default profile, with bpf() as containerd 1.7 and Docker 23 have it for CAP_BPF, or denied.
    """
    profile: dict[str, Any] = json.loads(_DEFAULT_SECCOMP.read_text())
    rules = [
        {**rule, "names": [n for n in rule["names"] if n != "bpf"]} for rule in profile["syscalls"]
    ]
    action = (
        {"action": "SCMP_ACT_ALLOW"} if allows_bpf else {"action": "SCMP_ACT_ERRNO", "errnoRet": 1}
    )
    profile["syscalls"] = [rule for rule in rules if rule["names"]] + [{"names": ["bpf"], **action}]
    file = directory / f"seccomp-{allows_bpf}.json"
    file.write_text(json.dumps(profile))
    return file


def as_daemonset(seccomp_profile: Path, configuration: Path) -> list[str]:
    """Options of ``podman run``."""
    memory = container()["resources"]["limits"]["memory"].removesuffix("i").lower()
    return [
        "--rm",
        "--pull=never",
        "--pid=host",
        "--network=none",
        "--cap-drop=all",
        f"--cap-add={','.join(capabilities())}",
        "--security-opt=no-new-privileges",
        f"--security-opt=seccomp={seccomp_profile}",
        "--read-only",
        f"--memory={memory}",
        "--volume=/sys/fs/cgroup:/sys/fs/cgroup:ro",
        f"--volume={configuration}:/etc/tailtrace/tailtrace.yaml:ro",
        # podman would raise these, which takes CAP_SYS_RESOURCE.
        "--ulimit=nofile=1024:1024",
        "--ulimit=nproc=1024:1024",
    ]


def podman(*arguments: str | Path) -> Outcome:
    return outcome([*PODMAN, *arguments])


def run(options: Sequence[str], *arguments: str) -> Outcome:
    return podman("run", *options, IMAGE, *arguments)
