"""Processes and shared segments: which memory is whose, and on which node."""

from __future__ import annotations

import errno
import mmap
import os

import numpy as np
import pytest

from tests.unit.numa_machine import NumaMachine, Piece, queue
from tracer.host.facts import Known, Unknown, value_of
from tracer.memory import process
from tracer.memory.pages import PAGE, SAMPLE, Pages
from tracer.memory.process import WALKED, memory_of
from tracer.memory.segments import segments
from tracer.memory.syscalls import nodes_of_pages
from workloads.rl_sampling import placing

RANDOM = np.random.default_rng(1)
HEAP = 0x500000


@pytest.fixture
def machine(tmp_path) -> NumaMachine:
    return NumaMachine(tmp_path)


def look(machine: NumaMachine, *pids: int):
    found = {pid: memory_of(pid, machine.ask, RANDOM, machine.proc) for pid in pids}
    return {pid: fact.value for pid, fact in found.items() if isinstance(fact, Known)}


def segments_of(machine: NumaMachine, *pids: int, most: int = 32):
    return segments(look(machine, *pids), machine.ask, RANDOM, most)


def test_private_memory_is_what_no_file_and_no_other_has(machine):
    machine.process(
        7,
        Piece(start=HEAP, nodes=[0, 0, 1], path="[heap]"),
        Piece(start=0x600000, nodes=[1]),
        Piece(start=0x700000, nodes=[0] * 9, path="/lib/libc.so.6", access="r-xp", inode=9),
        Piece(start=0x800000, nodes=[0] * 9, access="---p"),
        Piece(start=0x900000, nodes=[0], path="[vvar]", access="r--p"),
        queue([0] * 9),
    )

    (memory,) = look(machine, 7).values()

    assert memory.private == Known(Pages({0: 2, 1: 2}), f"{machine.proc}/7/numa_maps")
    assert machine.asked == []


def test_what_is_locked_and_what_is_pinned_cannot_move(machine):
    machine.process(7, Piece(start=HEAP, nodes=[0], path="[heap]"))
    machine.process(8, Piece(start=HEAP, nodes=[0], path="[heap]"))
    (machine.proc / "7/status").write_text("VmLck:\t    1024 kB\nVmPin:\t  512 kB\n")

    pinning, other = look(machine, 7, 8).values()

    assert pinning.locked_bytes == Known(1536 << 10, f"{machine.proc}/7/status")
    assert isinstance(other.locked_bytes, Unknown)


def test_huge_pages_count_as_what_they_hold(machine):
    machine.process(7, Piece(start=HEAP, nodes=[0], path="[heap]"))
    lines = f"{HEAP:x} default heap huge anon=3 N0=1 N1=2 kernelpagesize_kB=2048\n"
    (machine.proc / "7/numa_maps").write_text(lines)

    (memory,) = look(machine, 7).values()

    assert memory.private.value.by_node == {0: 512, 1: 1024}


def test_a_large_process_is_sampled(machine):
    half = [0] * 5000 + [1] * 5000
    machine.process(7, Piece(start=HEAP, nodes=half, path="[heap]"), resident=WALKED + 1)

    (memory,) = look(machine, 7).values()

    assert machine.asked == [(7, SAMPLE)]
    assert memory.private.value.error == pytest.approx(0.0118, abs=0.0001)
    assert memory.private.value.shares[0] == pytest.approx(0.5, abs=3 * 0.0118)


@pytest.fixture
def shared():
    """A segment of this process."""
    fd = os.memfd_create("bound")
    os.ftruncate(fd, 4 * PAGE)
    with mmap.mmap(fd, 4 * PAGE) as memory:
        os.close(fd)
        yield memory


def policy_in_a_large_process(monkeypatch) -> str | None:
    monkeypatch.setattr(process, "WALKED", 0)
    memory = value_of(memory_of(os.getpid(), nodes_of_pages, RANDOM))
    (policy,) = (
        memory.policies[identity]
        for identity, areas in memory.segments.items()
        if "bound" in areas[0].path
    )
    return value_of(policy)


@pytest.mark.parametrize(("balanced", "policy"), [(False, "bind:{}"), (True, "bind=balancing:{}")])
def test_a_large_process_is_asked_for_the_policy_of_a_segment(
    monkeypatch, shared, balanced, policy
):
    node = next(iter(placing.nodes()))
    placing.bind(shared, {node}, balanced=balanced)

    assert policy_in_a_large_process(monkeypatch) == policy.format(node)


def test_a_segment_without_a_policy_has_that_of_the_thread(monkeypatch, shared):
    assert policy_in_a_large_process(monkeypatch) == "default"


def test_a_segment_that_cannot_be_opened_has_no_known_policy(machine):
    machine.process(7, queue([0]), resident=WALKED + 1)

    (memory,) = look(machine, 7).values()

    (policy,) = memory.policies.values()
    assert "map_files" in policy.reason


def test_a_process_that_ended_meanwhile_is_unknown(machine):
    assert isinstance(memory_of(8, machine.ask, RANDOM, machine.proc), Unknown)


def test_a_process_with_more_areas_than_are_read_is_unknown(machine):
    machine.process(7, Piece(start=HEAP, nodes=[0], path="[heap]"))
    maps = machine.proc / "7/maps"
    maps.write_text(maps.read_text() * 65_531)

    assert "more than 65,530 areas" in memory_of(7, machine.ask, RANDOM, machine.proc).reason


def test_pages_of_a_segment_are_asked_of_each_user_until_one_knows(machine):
    machine.process(7, queue([0, -1, -1, -1]))
    machine.process(8, queue([-1, 1, -1, -1], start=0x7E0000000000))

    (segment,), more = segments_of(machine, 7, 8)

    assert (segment.path, segment.pids, more) == ("/dev/shm/queue", (7, 8), 0)
    assert segment.pages == Pages({0: 1, 1: 1})
    assert machine.asked == [(7, 4), (8, 3)]


def test_users_that_map_different_parts_of_a_segment(machine):
    machine.process(7, queue([0, 0], offset_pages=0))
    machine.process(8, queue([1, 1, 1], offset_pages=2, start=0x7E0000000000))

    (segment,), _ = segments_of(machine, 7, 8)

    assert segment.pages == Pages({0: 2, 1: 3})


def test_a_user_that_ended_leaves_what_others_know(machine):
    machine.process(7, queue([0, 0]))
    machine.process(8, queue([0, 0]))
    memories = look(machine, 7, 8)
    del machine._pieces[7]

    (segment,), _ = segments(memories, machine.ask, RANDOM, 32)

    assert segment.pages == Pages({0: 2})


def test_where_move_pages_is_denied_the_user_that_knows_most_tells(machine):
    machine.process(7, queue([0, -1, -1]))
    machine.process(8, queue([0, 1, -1]))

    def denied(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    memories = {pid: memory_of(pid, denied, RANDOM, machine.proc).value for pid in (7, 8)}
    (segment,), _ = segments(memories, denied, RANDOM, 32)

    assert segment.pages == Pages({0: 1, 1: 1})


def test_the_policy_of_who_binds_it_counts(machine):
    machine.process(7, queue([0]))
    machine.process(8, queue([0], policy="bind:1"))

    (segment,), _ = segments_of(machine, 7, 8)

    assert segment.policy == Known("bind:1", f"{machine.proc}/8/numa_maps")


@pytest.mark.parametrize(
    "path", ["/memfd:ring (deleted)", "/SYSV0000002a (deleted)", "/dev/zero (deleted)"]
)
def test_memory_on_the_kernel_s_own_mounts_is_shared_memory(machine, path):
    inside = Piece(start=HEAP, nodes=[1], path=path, access="rw-s", inode=5)
    machine.process(7, inside)
    (machine.proc / "7/mountinfo").write_text("")

    (segment,), _ = segments_of(machine, 7)

    assert (segment.path, segment.pages) == (path, Pages({1: 1}))


@pytest.mark.parametrize(
    "piece",
    [
        Piece(start=HEAP, nodes=[0], path="/memfd:stepmark (deleted)", access="rw-s", inode=5),
        Piece(start=HEAP, nodes=[0], path="/memfd:private", access="rw-p", inode=5),
    ],
    ids=["mark page", "private mapping"],
)
def test_what_is_no_segment(machine, piece):
    machine.process(7, piece)
    (machine.proc / "7/mountinfo").write_text("")

    assert segments_of(machine, 7) == ([], 0)


def test_a_file_on_a_disk_is_no_segment(machine):
    machine.process(7, queue([0]))
    (machine.proc / "7/mountinfo").write_text("30 1 0:26 / / rw - btrfs /dev/sda1 rw\n")

    assert segments_of(machine, 7) == ([], 0)


def test_beyond_the_configured_number_the_smallest_are_left_out_and_counted(machine):
    pieces = [
        Piece(start=HEAP << n, nodes=[0] * n, path=f"/memfd:{n}", access="rw-s", inode=n)
        for n in (1, 3, 2)
    ]
    machine.process(7, *pieces)

    found, more = segments_of(machine, 7, most=2)

    assert ([segment.path for segment in found], more) == (["/memfd:3", "/memfd:2"], 1)
