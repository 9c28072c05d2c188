"""Which CPUs the selftest leaves alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracer.errors import UnavailableError
from tracer.model import Target
from tracer.selftest.cpus import exclusive, pinned_to, undisturbed

OURS = frozenset({0, 1, 2, 3})


def test_a_thread_on_a_cpu_of_its_own_has_it_to_itself() -> None:
    assert pinned_to([frozenset({2}), OURS], OURS) == {2}


def test_a_thread_on_a_part_of_ours_has_that_part() -> None:
    assert pinned_to([frozenset({2, 3, 4})], OURS) == {2, 3, 4}


def test_threads_in_the_same_pool_have_nothing_to_themselves() -> None:
    assert pinned_to([OURS, OURS | {4, 5}], OURS) == frozenset()


def test_no_cpu_left_is_refused_by_the_name_of_who_holds_it() -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        with pytest.raises(UnavailableError, match=r"another's alone: engine \(\d+\); --anyway"):
            undisturbed([Target(1, os.getpid(), 0, "engine", "chat")])
    finally:
        os.sched_setaffinity(0, before)


def test_an_exclusive_cpuset_has_its_cpus_to_itself(tmp_path: Path) -> None:
    for group, cpus, flag in (("", "0-7", 1), ("a", "0-1", 0), ("b", "4-5", 1)):
        directory = tmp_path / "fs/cgroup/cpuset" / group
        directory.mkdir(parents=True)
        (directory / "cpuset.cpus").write_text(f"{cpus}\n")
        (directory / "cpuset.cpu_exclusive").write_text(f"{flag}\n")

    assert exclusive(tmp_path) == {4, 5}
