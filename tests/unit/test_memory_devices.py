"""Accelerators: which there are, on which node, who has which open; and what samples accesses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trees import write
from tests.unit.numa_machine import NumaMachine, Piece
from tracer.host.facts import Known, Unknown, value_of
from tracer.judge.misplaced import misplaced
from tracer.judge.placement import judge
from tracer.memory.accesses import remote_accesses
from tracer.memory.devices import accelerators, opened

NVIDIA, AMD, ASPEED = "0x10de", "0x1002", "0x1a03"
NEAR, FAR = "0000:3b:00.0", "0000:af:00.0"


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    """Two sockets: a card below a bridge of each, the server's console, a network card."""
    sys = tmp_path / "sys"
    card(sys, "pci0000:3a/0000:3a:00.0", NEAR, kind="0x030200", maker=NVIDIA, node=0)
    card(sys, "pci0000:ae/0000:ae:00.0", FAR, kind="0x038000", maker=AMD, node=1)
    card(sys, "pci0000:00", "0000:03:00.0", kind="0x030000", maker=ASPEED, node=0)
    card(sys, "pci0000:00", "0000:04:00.0", kind="0x020000", maker=NVIDIA, node=0)
    return sys


def card(sys: Path, below: str, address: str, *, kind: str, maker: str, node: int) -> None:
    device = sys / "devices" / below / address
    write(device / "class", kind)
    write(device / "vendor", maker)
    write(device / "numa_node", str(node))
    write(device / "local_cpulist", "0-83" if node == 0 else "84-167")
    link = sys / "bus/pci/devices" / address
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(device)


def process(proc: Path, *files: str) -> None:
    directory = proc / "7/fd"
    directory.mkdir(parents=True)
    for number, file in enumerate(files):
        (directory / str(number)).symlink_to(file)


def test_what_computes_is_found_with_its_node_and_the_bridges_before_it(sys):
    found = accelerators(sys)

    assert list(found) == [NEAR, FAR]
    assert [value_of(each.node) for each in found.values()] == [0, 1]
    assert found[FAR].behind == ("0000:ae:00.0",)
    assert value_of(found[FAR].cpus) == frozenset(range(84, 168))


def test_a_display_of_a_maker_of_accelerators_is_one(sys):
    card(sys, "pci0000:00", "0000:05:00.0", kind="0x030000", maker=NVIDIA, node=0)

    assert "0000:05:00.0" in accelerators(sys)


def test_minus_one_is_unknown_and_not_node_0(sys):
    card(sys, "pci0000:00", "0000:06:00.0", kind="0x120000", maker=AMD, node=-1)

    node = accelerators(sys)["0000:06:00.0"].node

    assert isinstance(node, Unknown)
    assert node.reason.endswith("numa_node is -1: the firmware does not tell")


def test_without_a_bus_there_is_none(tmp_path):
    assert accelerators(tmp_path) == {}


def test_devices_of_either_kind_are_known_by_what_a_process_has_open(sys, tmp_path):
    proc = tmp_path / "proc"
    process(proc, "/dev/nvidia1", "/dev/nvidiactl", "/dev/dri/renderD128", "socket:[5]")
    write(proc / f"driver/nvidia/gpus/{NEAR.upper()}/information", "Model: X\\nDevice Minor: \\t 1")
    drm = sys / "class/drm/renderD128"
    drm.mkdir(parents=True)
    (drm / "device").symlink_to(sys / f"bus/pci/devices/{FAR}")

    assert opened(7, proc, sys) == Known(frozenset({NEAR, FAR}), f"{proc}/7/fd")


def test_a_card_that_the_driver_does_not_name_is_left_out(sys, tmp_path):
    process(tmp_path / "proc", "/dev/nvidia3")

    assert value_of(opened(7, tmp_path / "proc", sys)) == frozenset()


def test_a_process_that_ended_is_unknown(sys, tmp_path):
    assert opened(7, tmp_path / "proc", sys) == Unknown("it has ended")


def test_a_card_is_found_to_be_far_from_those_who_use_it(tmp_path):
    """From the files of a machine of two sockets to what is said of it."""
    machine, now = NumaMachine(tmp_path), iter([0.0, 0.0, 60.0])
    card(machine.sys, "pci0000:ae/0000:ae:00.0", FAR, kind="0x038000", maker=AMD, node=1)
    drm = machine.sys / "class/drm/renderD128"
    drm.mkdir(parents=True)
    (drm / "device").symlink_to(machine.sys / f"bus/pci/devices/{FAR}")
    target = machine.process(7, Piece(start=0x500000, nodes=[0] * 4, path="[heap]"))
    process(machine.proc, "/dev/dri/renderD128")
    write(machine.proc / "7/status", "VmLck:\\t 0 kB\\nVmPin:\\t 8192 kB")
    looking = machine.watch(lambda: next(now))
    looking.tick([target])
    machine.thread(7, 7, cpu=0, ticks=100)

    (finding,) = misplaced(judge(looking.tick([target])))

    assert finding.seen == (
        f"accelerator {FAR} is on node 1, behind 0000:ae:00.0; engine-7 (pid 7), which uses it, ran"
        " 100 % on node 0; its private memory is 100 % on node 0, 8.0 MiB locked or pinned"
    )


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (None, "neither AMD's IBS nor Intel's PEBS"),
        ("ibs_op/type", "this version does not read ibs_op"),
        ("cpu/events/mem-loads", "this version does not read cpu"),
    ],
)
def test_single_accesses_are_told_nowhere_and_why(tmp_path, file, reason):
    if file:
        write(tmp_path / "bus/event_source/devices" / file, "11")
    told = remote_accesses(tmp_path)

    assert not told.available
    assert reason in told.reason
