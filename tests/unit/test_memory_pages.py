"""Pages by node: counting, sampling and its error, and the mismatch with where threads run."""

from __future__ import annotations

import errno
import mmap
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.memory.pages import PAGE, SAMPLE, Pages, chosen, counted, mismatch
from tracer.memory.syscalls import nodes_of_pages

RANDOM = np.random.default_rng(1)
amounts = st.dictionaries(st.integers(0, 3), st.integers(0, 1000))


def test_a_small_population_is_asked_for_whole_and_has_no_error():
    status = np.array([0, 1, 1, -errno.ENOENT], np.int32)

    assert chosen(4, RANDOM).tolist() == [0, 1, 2, 3]
    assert counted(status, 4) == Pages({0: 1, 1: 2}, 0.0)


def test_a_sample_has_no_page_twice_and_stays_inside():
    positions = chosen(100_000, RANDOM)

    assert len(set(positions.tolist())) == len(positions) == SAMPLE
    assert 0 <= positions.min() <= positions.max() < 100_000


def test_the_stated_error_holds_as_often_as_it_says():
    """Of 200 samples of a memory with 30 % on node 1, 19 of 20 within the error: binomially 180 at
    the very least."""
    truth = np.zeros(1_000_000, np.int32)
    truth[:300_000] = 1
    samples = [counted(truth[chosen(len(truth), RANDOM)], len(truth)) for _ in range(200)]

    assert samples[0].error == pytest.approx(0.0153, abs=0.0001)
    assert sum(abs(each.shares[1] - 0.3) <= each.error for each in samples) >= 180


def test_untouched_memory_is_no_memory():
    truth = np.full(100_000, -errno.ENOENT, np.int32)
    truth[:50_000] = 0
    estimated = counted(truth[chosen(len(truth), RANDOM)], len(truth))

    assert estimated.total == pytest.approx(50_000, rel=0.1)
    assert estimated.error > 0.98 / SAMPLE**0.5  # fewer pages tell less


def test_nothing_known_has_no_shares():
    pages = counted(np.full(3, -errno.ENOENT, np.int32), 3)

    assert (pages.total, pages.shares, pages.error) == (0, {}, 0.0)


@pytest.mark.parametrize(
    ("runs", "pages", "expected"),
    [
        ({1: 5.0}, {0: 100}, 1.0),
        ({0: 5.0}, {0: 100}, 0.0),
        ({0: 1.0, 1: 1.0}, {0: 100}, 0.5),
        ({0: 3.0, 1: 1.0}, {0: 25, 1: 75}, 0.5),
        ({}, {0: 100}, None),
        ({0: 1.0}, {}, None),
        ({0: 0.0}, {0: 100}, None),
    ],
)
def test_mismatch(runs, pages, expected):
    assert expected == mismatch(runs, pages)


@given(amounts, amounts)
def test_mismatch_is_symmetric_and_a_share(runs, pages):
    value = mismatch(runs, pages)

    assert value == mismatch(pages, runs)
    assert value is None or 0 <= value <= 1


def test_the_kernel_tells_of_touched_pages_and_of_others():
    memory = mmap.mmap(-1, 8 * PAGE)
    memory[0] = memory[3 * PAGE] = 1
    address = np.frombuffer(memory, np.uint8).ctypes.data
    status = nodes_of_pages(os.getpid(), np.uint64(address) + np.arange(8, dtype=np.uint64) * PAGE)

    assert [n for n, s in enumerate(status) if s >= 0] == [0, 3]
    assert {-errno.ENOENT} == {int(s) for s in status if s < 0}


def test_a_process_that_is_gone_is_an_error_with_its_name():
    with pytest.raises(ProcessLookupError, match="move_pages of process 4194304"):
        nodes_of_pages(4_194_304, np.zeros(1, np.uint64))
