"""The hypervisor: whether there is one, whose it is, and whether it tells of steal."""

from __future__ import annotations

import pytest

from tests.trees import NAMES, plant, planted, write
from tracer.host.facts import Known, Unknown, value_of
from tracer.host.hypervisor import Hypervisor

VENDORS = {"flat_vm": "VMware", "kvm_guest": "KVM", "hyperv_guest": "Hyper-V"}


@pytest.mark.parametrize("name", NAMES)
def test_virtual_machines_are_told_from_bare_metal(name):
    hypervisor = Hypervisor.read(*planted(name))

    assert (name in VENDORS, VENDORS.get(name)) == (
        hypervisor.virtual.value,
        value_of(hypervisor.vendor),
    )


def test_without_dmi_the_clocks_name_the_vendor():
    hypervisor = Hypervisor.read(*planted("kvm_guest"))

    assert Known("KVM", "it offers the clock 'kvm-clock'") == hypervisor.vendor
    assert ("tsc", ("tsc", "kvm-clock")) == (hypervisor.clock.value, hypervisor.clocks.value)


def test_a_steal_clock_that_has_moved_is_live():
    assert Hypervisor.read(*planted("kvm_guest")).steal_clock.value is True


def test_a_vmware_steal_of_zero_is_unknown_not_none():
    assert "VMware's is off unless it is asked for" in (
        Hypervisor.read(*planted("flat_vm")).steal_clock.reason
    )


def test_vmware_with_a_steal_clock_that_moves_is_live(tmp_path):
    proc, sys = plant("flat_vm", tmp_path)
    write(proc / "stat", "cpu 100 0 100 1000 0 0 0 5 0 0")

    assert Hypervisor.read(proc, sys).steal_clock.value is True


def test_a_kvm_guest_of_which_nothing_was_stolen_yet_is_unknown(tmp_path):
    proc, sys = plant("kvm_guest", tmp_path)
    write(proc / "stat", "cpu 100 0 100 1000 0 0 0 0 0 0")

    assert isinstance(Hypervisor.read(proc, sys).steal_clock, Unknown)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("hyperv_guest", "Linux knows no steal clock of Hyper-V"),
        ("two_sockets", "no hypervisor that could steal"),
    ],
)
def test_there_is_none_on(name, source):
    assert Known(False, source) == Hypervisor.read(*planted(name)).steal_clock


def test_a_steal_clock_can_be_switched_off_at_boot(tmp_path):
    proc, sys = plant("flat_vm", tmp_path)
    write(proc / "cmdline", "quiet no-steal-acc")

    assert Known(False, "the kernel was booted with no-steal-acc") == (
        Hypervisor.read(proc, sys).steal_clock
    )


def test_an_arm64_guest_is_told_by_its_device_tree(tmp_path):
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    write(proc / "cpuinfo", "processor : 0\\nFeatures : fp asimd")
    write(proc / "device-tree/hypervisor/compatible", "linux,kvm\0")

    hypervisor = Hypervisor.read(proc, sys)

    assert (True, "KVM") == (hypervisor.virtual.value, hypervisor.vendor.value)


def test_an_arm64_instance_of_bare_metal_is_told_from_its_virtual_siblings(tmp_path):
    proc, sys = plant("arm64", tmp_path)
    write(sys / "class/dmi/id/sys_vendor", "Amazon EC2")
    write(sys / "class/dmi/id/product_name", "c7g.metal")
    metal = Hypervisor.read(proc, sys)
    write(sys / "class/dmi/id/product_name", "c7g.16xlarge")
    sibling = Hypervisor.read(proc, sys)

    assert (False, True) == (metal.virtual.value, sibling.virtual.value)


def test_no_sign_at_all_is_unknown(tmp_path):
    write(tmp_path / "proc/cpuinfo", "processor : 0")

    hypervisor = Hypervisor.read(tmp_path / "proc", tmp_path / "sys")

    assert isinstance(hypervisor.virtual, Unknown)
    assert isinstance(hypervisor.steal_clock, Unknown)
