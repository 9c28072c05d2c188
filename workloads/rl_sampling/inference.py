"""
The inference actor: batches what the samplers ask and answers with a policy's forward pass.

Started by the workload. This is the place to look at for how an engine marks its steps.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter

import numpy as np

import stepmark
from workloads.rl_sampling import account, actor
from workloads.rl_sampling.account import Account
from workloads.rl_sampling.bursts import start_service_thread
from workloads.rl_sampling.pinning import pinned_to
from workloads.rl_sampling.slot_queue import ACTIONS, FEATURES, Floats, Requests, SlotQueue

IDLE_S = 0.1
"""Longest wait for requests before looking whether to stop."""


class Policy:
    """A perceptron with one hidden layer: (n, FEATURES) -> (n, ACTIONS) logits."""

    def __init__(self, hidden: int) -> None:
        random = np.random.default_rng(seed=0)
        scale = np.float32(FEATURES**-0.5)
        self._inward = random.standard_normal((FEATURES, hidden), np.float32) * scale
        self._outward = random.standard_normal((hidden, ACTIONS), np.float32)

    def __call__(self, features: Floats) -> Floats:
        logits: Floats = np.maximum(features @ self._inward, 0) @ self._outward
        return logits


class Engine:
    """The steps of the inference thread."""

    def __init__(self, queue: SlotQueue, policy: Policy, batch: int) -> None:
        self.own = Account()
        self._queue = queue
        self._policy = policy
        # Of fixed shape, as compiled engines have it: rows without a request are computed too.
        self._batch: Floats = np.zeros((batch, FEATURES), np.float32)

    def serve(self) -> None:
        """One step, if there is a request."""
        requests = self._queue.take(len(self._batch), IDLE_S)
        if not requests:
            return
        self._account_for_waits(requests)
        tenants = dict(Counter(requests.tenants))
        with self.own.timed("infer", tenants), stepmark.step("infer", tenants=tenants):
            with self.own.timed("gather"), stepmark.stage("gather"):
                self._queue.gather(requests, self._batch)
            with self.own.timed("forward"), stepmark.stage("forward"):
                logits = self._policy(self._batch)
            with self.own.timed("scatter"), stepmark.stage("scatter"):
                self._queue.answer(requests, logits[: len(requests)])

    def _account_for_waits(self, requests: Requests) -> None:
        taken_ns = time.monotonic_ns()
        for posted_ns, tenant in zip(requests.posted_ns, requests.tenants, strict=True):
            stepmark.queued(posted_ns, tenant)
            self.own.add("queued", posted_ns, taken_ns, {tenant: 1})


def main() -> None:
    parser = actor.arguments(__doc__)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--hidden", type=int, required=True)
    parser.add_argument("--thread-cpus", type=actor.numbers, required=True)
    parser.add_argument("--service-threads", type=int, required=True)
    parser.add_argument("--service-cpus", type=actor.numbers, required=True)
    parser.add_argument("--service-rate", type=float, required=True)
    parser.add_argument("--service-burst", type=float, required=True)
    options = parser.parse_args()
    actor.begin("rl-inference", options.parent)
    with pinned_to(options.service_cpus):
        for index in range(options.service_threads):
            start_service_thread(index, options.service_rate, options.service_burst)
    os.sched_setaffinity(0, options.thread_cpus)
    queue = SlotQueue(options.queue)
    engine = Engine(queue, Policy(options.hidden), options.batch)
    queue.open()
    actor.ready(options.parent)
    while not actor.stopping():
        engine.serve()
    account.write(engine.own.rows, sys.stdout)


if __name__ == "__main__":
    main()
