"""Where the queue of the RL workload lies. On two nodes: tests/lab/test_placement.py."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from workloads.rl_sampling import placing
from workloads.rl_sampling.placing import Place

ONE = {0: frozenset({0, 1})}
TWO = {0: frozenset({0, 1}), 1: frozenset({2, 3})}


def test_nodes_are_those_with_cpus(tmp_path: Path) -> None:
    for node, listed in {0: "0-1,4", 1: "2-3", 2: ""}.items():
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}/cpulist").write_text(f"{listed}\n")

    assert placing.nodes(tmp_path) == {0: {0, 1, 4}, 1: {2, 3}}


@pytest.mark.parametrize("place", Place)
def test_with_one_node_the_queue_lies_where_it_is_touched(place: Place) -> None:
    assert placing.possible(place, ONE) is Place.FIRST_TOUCH
    assert placing.possible(place, TWO) is place


def test_memory_is_bound_to_a_node_that_is_there_and_to_no_other() -> None:
    here = next(iter(placing.nodes()))
    with mmap.mmap(-1, 4 * mmap.PAGESIZE) as memory:
        placing.bind(memory, {here})
        placing.touch(memory)
        policies = Path("/proc/self/numa_maps").read_text()
        with pytest.raises(OSError, match=r"mbind to nodes \[1000\]"):
            placing.bind(memory, {1000})

    assert f"bind:{here} file=/dev/zero" in policies


def test_a_queue_bound_to_the_inference_thread_s_node_is_all_there() -> None:
    there = placing.nodes()
    fd = os.memfd_create("queue")
    os.ftruncate(fd, 8 * mmap.PAGESIZE)
    fake = {**there, 1000: frozenset({4096})}  # so that there is another
    placing.place(fd, Place.RIGHT, next(iter(there.values())), fake)

    assert os.fstat(fd).st_blocks * 512 == 8 * mmap.PAGESIZE
    os.close(fd)
