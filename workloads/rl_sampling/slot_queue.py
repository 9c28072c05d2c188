"""
The shared-memory queue between samplers and the inference actor.

One POSIX segment: three adjacent int32 arrays over the slots (state, request length, response
length: 1,024 bytes each, sixteen slots to a cache line), then the slots with their payload. Slots
are claimed and handed over under ``flock``; payloads are copied outside of it, by whoever owns the
slot at that time::

    FREE --post--> CLAIMED --> POSTED --take--> TAKEN --answer--> ANSWERED --collect--> FREE

The arrays share cache lines on purpose: that is how the system we model was built.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import select
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SLOTS = 256
FEATURES = 12_288  # float32: 48 KB a request
ACTIONS = 64
TENANT_BYTES = 52  # with the two numbers before it a cache line

SLOT = np.dtype(
    [
        ("posted_ns", np.int64),
        ("sampler", np.int32),
        ("tenant", f"S{TENANT_BYTES}"),
        ("features", np.float32, FEATURES),
        ("response", np.float32, ACTIONS),
    ]
)
SEGMENT = np.dtype(
    [
        ("states", np.int32, SLOTS),
        ("request_lengths", np.int32, SLOTS),
        ("response_lengths", np.int32, SLOTS),
        ("slots", SLOT, SLOTS),
    ]
)
FULL_RETRY_S = 0.001

Slots = NDArray[np.intp]
Floats = NDArray[np.float32]


class State(IntEnum):
    FREE = 0
    CLAIMED = 1
    POSTED = 2
    TAKEN = 3
    ANSWERED = 4


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests that the inference actor has taken up, oldest first."""

    slots: Slots
    posted_ns: Sequence[int]
    tenants: Sequence[str]

    def __len__(self) -> int:
        return len(self.slots)


class Doorbell:
    """Wakes the one process that waits on it. Rings add up, so none is lost between waits."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def ring(self) -> None:
        os.eventfd_write(self._fd, 1)

    def wait(self, seconds: float) -> bool:
        if not self._poll.poll(seconds * 1000):
            return False
        os.eventfd_read(self._fd)
        return True


@contextmanager
def new_queue(samplers: int) -> Iterator[Sequence[int]]:
    """
    The file descriptors of a new queue, to be inherited by its users: the segment, the doorbell of
    the inference actor, and one doorbell for each sampler.

    The segment's name is gone before anybody uses it, so no kind of death leaves it behind.
    """
    segment, path = tempfile.mkstemp(prefix=f"rl_sampling-{os.getpid()}-", dir="/dev/shm")
    Path(path).unlink()
    os.ftruncate(segment, SEGMENT.itemsize)
    fds = [segment] + [os.eventfd(0) for _ in range(1 + samplers)]
    try:
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


class SlotQueue:
    """One process's view of the queue. Not for use by two threads of a process."""

    def __init__(self, fds: Sequence[int]) -> None:
        """``fds`` are those of ``new_queue``."""
        segment, inference, *samplers = fds
        # flock tells open files apart, not processes: an inherited one would not exclude anybody.
        self._lock_fd = os.open(f"/proc/self/fd/{segment}", os.O_RDWR)
        shared = np.frombuffer(mmap.mmap(segment, SEGMENT.itemsize), SEGMENT, count=1)
        self._states = shared["states"][0]
        self._request_lengths = shared["request_lengths"][0]
        self._response_lengths = shared["response_lengths"][0]
        self._slots = shared["slots"][0]
        self._posted = Doorbell(inference)
        self._answered = [Doorbell(fd) for fd in samplers]

    # The sampler's side.

    def is_open(self, sampler: int) -> bool:
        """Whether the inference actor is there. Waits a moment for it."""
        return self._answered[sampler].wait(0.1)

    def post(self, sampler: int, tenant: str, features: Floats) -> Slots:
        """Hand over (n, FEATURES) requests, n <= SLOTS. Waits while the queue is full."""
        slots = self._claim(len(features))
        self._slots["features"][slots] = features
        self._slots["sampler"][slots] = sampler
        self._slots["tenant"][slots] = tenant.encode()
        self._slots["posted_ns"][slots] = time.monotonic_ns()
        with self._locked():
            self._request_lengths[slots] = features[0].nbytes
            self._states[slots] = State.POSTED
        self._posted.ring()
        return slots

    def collect(self, sampler: int, slots: Slots) -> Floats:
        """The (n, ACTIONS) responses, once all of them are there. Frees the slots."""
        while not self._all_answered(slots):
            self._answered[sampler].wait(1.0)
        responses: Floats = self._slots["response"][slots]
        with self._locked():
            self._states[slots] = State.FREE
        return responses

    # The inference actor's side.

    def open(self) -> None:
        """Tell every sampler that requests will be answered from now on."""
        for doorbell in self._answered:
            doorbell.ring()

    def take(self, limit: int, timeout_s: float) -> Requests:
        """At most ``limit`` requests, the oldest; none when none came in ``timeout_s``."""
        slots = self._take_posted(limit)
        if not len(slots) and self._posted.wait(timeout_s):
            slots = self._take_posted(limit)
        return Requests(
            slots,
            self._slots["posted_ns"][slots].tolist(),
            [tenant.decode() for tenant in self._slots["tenant"][slots]],
        )

    def gather(self, requests: Requests, batch: Floats) -> None:
        """Copy the feature vectors into the first rows of ``batch``."""
        batch[: len(requests)] = self._slots["features"][requests.slots]

    def answer(self, requests: Requests, responses: Floats) -> None:
        """Hand back (n, ACTIONS) responses and wake the samplers that wait for them."""
        slots = requests.slots
        self._slots["response"][slots] = responses
        with self._locked():
            self._response_lengths[slots] = responses[0].nbytes
            self._states[slots] = State.ANSWERED
        for sampler in np.unique(self._slots["sampler"][slots]):
            self._answered[sampler].ring()

    # Slot operations: short, and one at a time on the whole machine.

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.flock(self._lock_fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock_fd, fcntl.LOCK_UN)

    def _claim(self, wanted: int) -> Slots:
        """All or nothing, so that two samplers cannot wait for each other's half."""
        while True:
            with self._locked():
                free = np.flatnonzero(self._states == State.FREE)[:wanted]
                if len(free) == wanted:
                    self._states[free] = State.CLAIMED
                    return free
            time.sleep(FULL_RETRY_S)

    def _take_posted(self, limit: int) -> Slots:
        with self._locked():
            posted = np.flatnonzero(self._states == State.POSTED)
            oldest = np.argsort(self._slots["posted_ns"][posted], kind="stable")[:limit]
            slots: Slots = posted[oldest]
            self._states[slots] = State.TAKEN
        return slots

    def _all_answered(self, slots: Slots) -> bool:
        with self._locked():
            return bool((self._states[slots] == State.ANSWERED).all())
