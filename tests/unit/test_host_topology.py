"""Topology: sockets, cores, threads, nodes and caches of machines of many makes."""

from __future__ import annotations

import pytest

from tests.trees import plant, planted, write
from tracer.host.facts import Known, Unknown
from tracer.host.processor import Processor
from tracer.host.topology import Topology, nodes_of

SHAPES = {  # sockets, cores per socket, threads per core, nodes, last-level caches
    "flat_vm": (88, 1, 1, 1, 88),
    "two_sockets": (2, 84, 1, 2, 24),
    "epyc_nps0": (2, 64, 2, 1, 16),
    "epyc_nps1": (2, 64, 2, 2, 16),
    "epyc_nps4": (2, 64, 2, 8, 16),
    "xeon": (2, 56, 2, 2, 2),
    "kvm_guest": (1, 2, 1, 1, 1),
    "hyperv_guest": (1, 8, 2, 1, 1),
    "arm64": (2, 80, 1, 2, 160),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_shape_of(name):
    _, sys = planted(name)

    topology = Topology.read(sys)

    assert SHAPES[name] == (
        len(topology.sockets.value),
        topology.cores_per_socket.value,
        topology.threads_per_core.value,
        len(topology.nodes.value),
        len(topology.last_caches.value),
    )


def test_nodes_have_cpus_and_memory():
    _, sys = planted("epyc_nps4")

    nodes = Topology.read(sys).nodes.value

    assert frozenset({*range(16, 32), *range(144, 160)}) == nodes[1].cpus
    assert 128 << 30 == nodes[1].memory_bytes.value
    assert frozenset({0, 1}) == nodes_of(nodes, frozenset({3, 16}))


def test_a_cache_is_counted_once_with_those_who_share_it():
    _, sys = planted("two_sockets")

    cache = Topology.read(sys).last_caches.value[1]

    assert (3, 32 << 20, frozenset(range(7, 14))) == (
        cache.level,
        cache.size_bytes.value,
        cache.cpus,
    )


def test_cpus_that_are_offline_have_no_socket(tmp_path):
    _, sys = plant("two_sockets", tmp_path)
    write(sys / "devices/system/cpu/online", "0-83")

    assert 1 == len(Topology.read(sys).sockets.value)


def test_a_socket_that_the_firmware_does_not_tell_is_unknown(tmp_path):
    _, sys = plant("arm64", tmp_path)
    write(sys / "devices/system/cpu/cpu0/topology/physical_package_id", "-1")

    topology = Topology.read(sys)

    assert "is -1: the firmware does not tell" in topology.sockets.reason
    assert topology.sockets == topology.cores_per_socket


def test_without_sysfs_all_is_unknown(tmp_path):
    topology = Topology.read(tmp_path)

    assert all(isinstance(getattr(topology, name), Unknown) for name in topology.__slots__)
    assert "no node" in topology.nodes.reason


@pytest.mark.parametrize(
    ("name", "cores"),
    [("two_sockets", 84), ("xeon", 60), ("kvm_guest", 128), ("hyperv_guest", 40)],
)
def test_how_many_cores_a_socket_can_have(name, cores):
    """By the name, else by the largest part of the family."""
    proc, _ = planted(name)

    assert cores == Processor.read(proc).cores_per_socket.value


def test_a_processor_that_is_not_in_the_table_has_no_number_of_cores(tmp_path):
    write(tmp_path / "cpuinfo", "vendor_id : Maker\\ncpu family : 7\\nmodel : 1\\nmodel name : M1")

    assert Unknown("processor Maker family 7 model 1 is not in our table") == (
        Processor.read(tmp_path).cores_per_socket
    )


def test_arm64_has_neither_flags_nor_a_name():
    proc, _ = planted("arm64")

    processor = Processor.read(proc)

    assert not any(isinstance(f, Known) for f in (processor.flags, processor.name))
