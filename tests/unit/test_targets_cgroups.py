"""Containers and groups, from /proc/PID/cgroup as runtimes and drivers write it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.targets.cgroups import Cgroups, Container, identify
from tracer.targets.pods import FindPod, Pod

ID, OUTER = "0123456789abcdef" * 4, "fedcba9876543210" * 4
UID = "1f0c6d27-3e6a-4b5c-9d8e-7a6b5c4d3e2f"
SLICE = f"kubepods-burstable-pod{UID.replace('-', '_')}.slice"
POD = f"/kubepods.slice/kubepods-burstable.slice/{SLICE}"

RECORDED = {
    "v2, systemd driver, containerd": (
        f"0::{POD}/cri-containerd-{ID}.scope\n",
        Container(ID, "containerd", UID),
    ),
    "v2, systemd driver, guaranteed": (
        f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{ID}.scope\n",
        Container(ID, "containerd", UID),
    ),
    "v2, systemd driver, CRI-O, crun's own level": (
        f"0::{POD}/crio-{ID}.scope/container\n",
        Container(ID, "cri-o", UID),
    ),
    "v2, systemd driver, CRI-O's monitor": (
        f"0::{POD}/crio-conmon-{ID}.scope\n",
        Container("", "", UID),
    ),
    "v2, systemd driver, docker": (f"0::{POD}/docker-{ID}.scope\n", Container(ID, "docker", UID)),
    "v2, cgroupfs driver": (
        f"0::/kubepods/burstable/pod{UID}/{ID}\n",
        Container(ID, "", UID),
    ),
    "v2, cgroupfs driver, guaranteed": (f"0::/kubepods/pod{UID}/{ID}\n", Container(ID, "", UID)),
    "v2, containerd's mixed form": (
        f"0::/system.slice/containerd.service/{SLICE}:cri-containerd:{ID}\n",
        Container(ID, "containerd", UID),
    ),
    "static pod": (
        f"0::/kubepods/burstable/pod{ID[:32]}/{ID}\n",
        Container(ID, "", ID[:32]),
    ),
    "nested in docker, kind": (
        f"0::/docker/{OUTER}/kubelet.slice/kubelet-kubepods.slice/kubelet-{SLICE}"
        f"/cri-containerd-{ID}.scope\n",
        Container(ID, "containerd", UID),
    ),
    "v1, cgroupfs driver": (
        f"12:memory:/kubepods/besteffort/pod{UID}/{ID}\n"
        f"4:cpu,cpuacct:/kubepods/besteffort/pod{UID}/{ID}\n"
        "1:name=systemd:/\n",
        Container(ID, "", UID),
    ),
    "hybrid: the CPU controller's path before the unified one": (
        f"9:cpuset:/docker/{OUTER}\n4:cpu,cpuacct:/docker/{ID}\n0::/system.slice/docker.service\n",
        Container(ID, "docker"),
    ),
    "docker without Kubernetes": (
        f"0::/system.slice/docker-{ID}.scope\n",
        Container(ID, "docker"),
    ),
    "podman": (
        f"0::/machine.slice/libpod-{ID}.scope/container\n",
        Container(ID, "podman"),
    ),
    "a pod's own group": (f"0::{POD}\n", Container("", "", UID)),
    "a service": ("0::/system.slice/cron.service\n", None),
    "v1 without containers": ("2:cpuacct:/\n1:cpu:/\n0::/\n", None),
    "another namespace": ("0::/../../user.slice\n", None),
    "nothing": ("", None),
}


_SCOPES = {"containerd": "cri-containerd", "cri-o": "crio", "docker": "docker"}
_QOS = ("besteffort", "burstable", "guaranteed")
_UIDS = {"ordinary": UID, "static": ID[:32]}


def slice_path(quality: str, uid: str, runtime: str) -> str:
    """As the systemd driver of every runtime writes it."""
    level = [] if quality == "guaranteed" else [quality]
    names = ["kubepods", *level, f"pod{uid.replace('-', '_')}"]
    slices = ["-".join(names[: n + 1]) + ".slice" for n in range(len(names))]
    return "/" + "/".join([*slices, f"{_SCOPES[runtime]}-{ID}.scope"])


def plain_path(quality: str, uid: str, runtime: str) -> str:
    """As the cgroupfs driver writes it; only CRI-O tells itself."""
    level = "" if quality == "guaranteed" else f"/{quality}"
    return f"/kubepods{level}/pod{uid}/{'crio-' if runtime == 'cri-o' else ''}{ID}"


HOSTS = {
    "v2": "0::{path}\n",
    "v1": "11:memory:{path}\n4:cpu,cpuacct:{path}\n1:name=systemd:{path}\n",
    "hybrid": "11:memory:{path}\n4:cpu,cpuacct:{path}\n1:name=systemd:{path}\n0::{path}\n",
    "hybrid, the unified hierarchy unused": "4:cpu,cpuacct:{path}\n0::/system.slice/x.service\n",
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("uid", _UIDS)
@pytest.mark.parametrize("quality", _QOS)
@pytest.mark.parametrize("runtime", _SCOPES)
@pytest.mark.parametrize("driver", [slice_path, plain_path])
def test_every_runtime_under_every_driver_and_host(driver, runtime, quality, uid, host):
    path = driver(quality, _UIDS[uid], runtime)
    told = runtime if driver is slice_path or runtime == "cri-o" else ""

    assert Container(ID, told, _UIDS[uid]) == identify(HOSTS[host].format(path=path))


@pytest.mark.parametrize(("text", "container"), RECORDED.values(), ids=RECORDED)
def test_a_container_is_told_by_its_cgroup(text, container):
    assert container == identify(text)


@given(st.text())
def test_any_text_is_a_container_or_none(text):
    assert identify(text) is None or len(identify(text).id) in {0, 64}


def host(
    root: Path,
    directories: list[str],
    processes: dict[str, str],
    find_pod: FindPod = lambda uid: None,
) -> Cgroups:
    """A host with these directories under /sys/fs/cgroup, and these /proc/PID/cgroup."""
    for directory in directories:
        (root / "sys/fs/cgroup" / directory).mkdir(parents=True, exist_ok=True)
    for process, text in processes.items():
        (root / "proc" / process).mkdir(parents=True)
        (root / "proc" / process / "cgroup").write_text(text)
    return Cgroups(root / "proc", root / "sys", find_pod)


def inode(root: Path, directory: str) -> int:
    return (root / "sys/fs/cgroup" / directory).stat().st_ino


@pytest.mark.parametrize(
    ("mounted", "row"),
    [
        ("cpu", "3:cpu:"),
        ("cpu,cpuacct", "3:cpu,cpuacct:"),
        ("cpu", "3:cpu,cpuacct:"),
    ],
)
def test_with_both_versions_the_id_is_of_the_cpu_controllers_group(tmp_path, mounted, row):
    directories = ["unified/docker", f"{mounted}/docker/{ID}", "cpuacct"]
    processes = {"self": f"{row}/\n0::/\n", "7": f"{row}/docker/{ID}\n0::/docker\n"}
    cgroups = host(tmp_path, directories, processes)
    (tmp_path / "sys/fs/cgroup" / mounted / "docker" / ID / "cpu.shares").touch()

    assert inode(tmp_path, f"{mounted}/docker/{ID}") == cgroups.cgroup_id(7)
    assert cgroups.name_of(inode(tmp_path, f"{mounted}/docker/{ID}")) == "docker:0123456789ab"


def test_in_v2_the_id_is_of_the_nearest_group_that_has_the_controller(tmp_path):
    cgroups = host(
        tmp_path, ["a.slice/b.scope/c"], {"self": "0::/\n", "7": "0::/a.slice/b.scope/c\n"}
    )
    (tmp_path / "sys/fs/cgroup/a.slice/cpu.weight").touch()

    assert inode(tmp_path, "a.slice") == cgroups.cgroup_id(7)


def test_a_process_that_is_gone_or_outside_has_no_id(tmp_path):
    cgroups = host(tmp_path, ["a"], {"self": "0::/\n", "7": "0::/../../a\n"})

    assert cgroups.cgroup_id(7) is None
    assert cgroups.cgroup_id(8) is None


def test_a_group_without_a_container_has_no_name(tmp_path):
    cgroups = host(tmp_path, ["system.slice"], {"self": "0::/\n"})

    assert cgroups.name_of(inode(tmp_path, "system.slice")) is None


def test_a_group_of_a_pod_that_is_known_has_the_pods_name(tmp_path):
    pods = {UID: Pod("team-a", "chat-0", {}, {})}
    cgroups = host(tmp_path, [f"kubepods/pod{UID}/{ID}"], {"self": "0::/\n"}, pods.get)

    group = inode(tmp_path, f"kubepods/pod{UID}/{ID}")
    assert "team-a/chat-0" == cgroups.name_of(group)
    pods.clear()
    assert "container:0123456789ab" == cgroups.name_of(group)


def test_a_container_that_is_gone_keeps_its_name(tmp_path):
    cgroups = host(tmp_path, [f"docker/{ID}"], {"self": "0::/\n"})
    gone = inode(tmp_path, f"docker/{ID}")
    cgroups.name_of(gone)
    (tmp_path / "sys/fs/cgroup/docker" / ID).rmdir()

    assert cgroups.name_of(gone) == "docker:0123456789ab"


def test_our_own_group_is_found_on_this_host():
    assert Cgroups().cgroup_id(os.getpid()) is not None
