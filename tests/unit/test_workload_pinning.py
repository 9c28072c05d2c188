"""Which CPUs each part of the RL workload gets, on machines of any size."""

from __future__ import annotations

import os
from dataclasses import asdict

import pytest

from workloads.rl_sampling.pinning import Variant, pinned_to, pinning, possible

SIZES = [1, 2, 3, 4, 5, 8, 88]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("variant", Variant)
def test_every_part_has_a_cpu_and_none_that_is_not_there(variant: Variant, size: int) -> None:
    cpus = set(range(size))
    placed = asdict(pinning(possible(variant, cpus), cpus))

    assert all(part and part <= cpus for part in placed.values())


@pytest.mark.parametrize("size", SIZES)
def test_plain_pins_nothing(size: int) -> None:
    cpus = frozenset(range(size))

    assert {cpus} == set(asdict(pinning(Variant.PLAIN, cpus)).values())


def test_affinity_nests_threads_in_processes_in_the_group() -> None:
    placed = pinning(Variant.AFFINITY, set(range(8)))

    assert {1, 2, 3, 4, 5, 6, 7} == placed.group
    assert {1, 2, 3} == placed.samplers
    assert {4, 5, 6, 7} == placed.inference_process
    assert {7} == placed.inference_thread
    assert {4, 5, 6} == placed.service_threads
    assert set(range(8)) == placed.neighbour


def test_affinity_on_two_cpus_leaves_service_threads_beside_the_inference_thread() -> None:
    placed = pinning(Variant.AFFINITY, {0, 1})

    assert {0} == placed.samplers
    assert {1} == placed.inference_thread == placed.service_threads


@pytest.mark.parametrize("size", SIZES[1:])
def test_isolated_leaves_the_inference_thread_alone(size: int) -> None:
    placed = asdict(pinning(Variant.ISOLATED, set(range(size))))
    (alone,) = placed.pop("inference_thread")
    placed.pop("group")

    assert not [part for part, cpus in placed.items() if alone in cpus]


def test_isolated_is_plain_where_there_is_one_cpu() -> None:
    assert Variant.PLAIN is possible(Variant.ISOLATED, {5})
    assert Variant.ISOLATED is possible(Variant.ISOLATED, {5, 6})


def test_pinned_to_gives_back_what_was_allowed_before() -> None:
    before = os.sched_getaffinity(0)
    one = frozenset(sorted(before)[:1])

    with pinned_to(one):
        assert one == os.sched_getaffinity(0)
    assert before == os.sched_getaffinity(0)
