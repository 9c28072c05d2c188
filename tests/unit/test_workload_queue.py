"""The shared-memory queue: each request is answered once, with its own answer."""

from __future__ import annotations

import mmap
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from workloads.rl_sampling.slot_queue import (
    ACTIONS,
    FEATURES,
    SEGMENT,
    SLOTS,
    Floats,
    Requests,
    SlotQueue,
    Slots,
    State,
    new_queue,
)

ROOT = Path(__file__).parents[2]
NOW = 0.0


def features_of(numbers: list[int]) -> Floats:
    """Vectors that carry their request's number in the first and the last element."""
    features = np.zeros((len(numbers), FEATURES), np.float32)
    features[:, 0] = features[:, -1] = numbers
    return features


def answers_to(features: Floats) -> Floats:
    return np.repeat(features[:, :1] + features[:, -1:], ACTIONS, axis=1)


def serve(queue: SlotQueue, requests: Requests) -> list[float]:
    """Answer requests; their numbers."""
    batch = np.empty((len(requests), FEATURES), np.float32)
    queue.gather(requests, batch)
    queue.answer(requests, answers_to(batch))
    return [float(number) for number in batch[:, 0]]


def census(fds: Sequence[int]) -> dict[State, int]:
    """How many slots are in each state."""
    shared = np.frombuffer(mmap.mmap(fds[0], SEGMENT.itemsize), SEGMENT, count=1)
    counts = np.bincount(shared["states"][0], minlength=len(State))
    return {state: int(counts[state]) for state in State}


@pytest.fixture
def fds() -> Iterator[Sequence[int]]:
    with new_queue(samplers=2) as fds:
        yield fds


@pytest.fixture
def queue(fds: Sequence[int]) -> SlotQueue:
    return SlotQueue(fds)


def test_the_three_arrays_are_adjacent_and_share_cache_lines() -> None:
    assert SEGMENT.fields
    offsets = {name: offset for name, (_, offset, *_) in SEGMENT.fields.items()}

    assert offsets == {
        "states": 0,
        "request_lengths": 1024,
        "response_lengths": 2048,
        "slots": 3072,
    }
    assert SEGMENT["slots"].base["features"].itemsize == 48 * 1024


class QueueAgainstModel(RuleBasedStateMachine):
    """Any order of operations, beside plain lists that say what must be where."""

    def __init__(self) -> None:
        super().__init__()
        self.resources = new_queue(samplers=1)
        self.fds = self.resources.__enter__()
        self.queue = SlotQueue(self.fds)
        self.next = 1
        self.posted: list[int] = []  # numbers of requests, oldest first
        # Numbers that were posted together -> their slots.
        self.groups: dict[tuple[int, ...], Slots] = {}
        self.taken: list[tuple[Requests, list[int]]] = []  # (requests, numbers)
        self.answered: set[int] = set()

    def teardown(self) -> None:
        self.resources.__exit__(None, None, None)

    @rule(count=st.integers(1, 60))
    def post(self, count: int) -> None:
        in_use = sum(len(numbers) for numbers in self.groups)
        count = min(count, SLOTS - in_use)
        if count == 0:
            return
        numbers = list(range(self.next, self.next + count))
        self.next += count
        self.groups[tuple(numbers)] = self.queue.post(0, "chat", features_of(numbers))
        self.posted += numbers

    @rule(limit=st.integers(1, 40))
    def take(self, limit: int) -> None:
        requests = self.queue.take(limit, NOW)
        numbers, self.posted = self.posted[:limit], self.posted[limit:]

        assert len(numbers) == len(requests)
        assert ["chat"] * len(numbers) == list(requests.tenants)
        if numbers:
            self.taken.append((requests, numbers))

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        requests, numbers = self.taken.pop(data.draw(st.integers(0, len(self.taken) - 1)))

        assert sorted(numbers) == sorted(serve(self.queue, requests))
        self.answered |= set(numbers)

    @rule()
    def collect(self) -> None:
        for numbers in [group for group in self.groups if self.answered.issuperset(group)]:
            answers = self.queue.collect(0, self.groups.pop(numbers))
            assert answers[:, 5].tolist() == [2 * number for number in numbers]

    @invariant()
    def every_slot_is_in_the_state_that_the_model_says(self) -> None:
        alive = {number for numbers in self.groups for number in numbers}
        expected = {
            State.POSTED: len(self.posted),
            State.TAKEN: sum(len(numbers) for _, numbers in self.taken),
            State.ANSWERED: len(self.answered & alive),
            State.CLAIMED: 0,
            State.FREE: SLOTS - len(alive),
        }
        assert census(self.fds) == expected


TestQueueAgainstModel = QueueAgainstModel.TestCase
TestQueueAgainstModel.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)


def test_an_empty_queue_gives_nothing(queue: SlotQueue) -> None:
    assert len(queue.take(8, NOW)) == 0


def test_a_request_tells_whose_it_is_and_since_when(queue: SlotQueue) -> None:
    queue.post(1, "policy-b", features_of([7]))

    requests = queue.take(8, NOW)

    assert requests.tenants == ["policy-b"]
    assert requests.posted_ns[0] > 0


def test_a_full_queue_holds_the_sampler_back_until_slots_are_free(
    fds: Sequence[int], queue: SlotQueue
) -> None:
    first = queue.post(0, "chat", features_of(list(range(SLOTS))))
    late: list[Slots] = []
    sampler = SlotQueue(fds)  # of its own, as another process has it
    thread = threading.Thread(target=lambda: late.append(sampler.post(1, "chat", features_of([9]))))
    thread.start()
    thread.join(0.05)
    waiting = thread.is_alive()

    serve(queue, queue.take(SLOTS, NOW))
    queue.collect(0, first)
    thread.join()

    assert waiting
    assert serve(queue, queue.take(8, NOW)) == [9.0]


SAMPLER = """
import sys
import numpy as np
from workloads.rl_sampling.slot_queue import FEATURES, SlotQueue

index, rounds, *fds = map(int, sys.argv[1:])
queue, random = SlotQueue(fds), np.random.default_rng(index)
for _ in range(rounds):
    group = np.zeros((random.choice([1, 2, 99], p=[0.6, 0.38, 0.02]), FEATURES), np.float32)
    group[:, 0] = group[:, -1] = random.integers(0, 1_000_000, len(group))
    slots = queue.post(index, f"policy-{index}", group)
    answers = queue.collect(index, slots)
    assert (answers == 2 * group[:, :1]).all(), "a wrong answer"
    print(*group[:, 0].astype(int))
"""


def test_three_processes_at_once_lose_swap_and_repeat_nothing() -> None:
    """Many small groups that race for the lock; large ones that use up the 256 slots."""
    with new_queue(samplers=3) as fds, ExitStack() as undo:
        queue = SlotQueue(fds)
        samplers = [undo.enter_context(sampler_process(index, fds)) for index in range(3)]
        served = serve_until_all_ended(queue, samplers)
        all_free = census(fds)[State.FREE] == SLOTS
        asked = [int(n) for sampler in samplers for n in sampler.communicate()[0].split()]

    assert [sampler.returncode for sampler in samplers] == [0, 0, 0]
    assert sorted(served) == sorted(asked)
    assert all_free


def sampler_process(index: int, fds: Sequence[int]) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SAMPLER, str(index), "1500", *map(str, fds)]
    return subprocess.Popen(command, cwd=ROOT, pass_fds=fds, stdout=subprocess.PIPE, text=True)


def serve_until_all_ended(
    queue: SlotQueue, samplers: Sequence[subprocess.Popen[str]]
) -> list[float]:
    """Numbers served. Gives up after a minute: a lost request would keep a sampler for ever."""
    served: list[float] = []
    deadline = time.monotonic() + 60
    try:
        while any(sampler.poll() is None for sampler in samplers) and time.monotonic() < deadline:
            requests = queue.take(16, 0.1)
            if requests:
                served += serve(queue, requests)
    finally:
        for sampler in samplers:
            sampler.kill()
    return served
