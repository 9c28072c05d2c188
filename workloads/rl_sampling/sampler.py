"""
A sampling actor: a group of environments that asks the policy what to do next.

Started by the workload. Its ``sample`` step lasts from the request to the response.
"""

from __future__ import annotations

import sys

import numpy as np

import stepmark
from workloads.rl_sampling import account, actor
from workloads.rl_sampling.account import Account
from workloads.rl_sampling.slot_queue import FEATURES, Floats, SlotQueue


class Environments:
    """Random walks in place of games: each action shifts what is seen next."""

    def __init__(self, count: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.features: Floats = self._random.standard_normal((count, FEATURES), np.float32)

    def act(self, logits: Floats) -> None:
        """Take the likeliest of (count, ACTIONS) actions in each environment."""
        self.features *= 0.9
        self.features += 0.1 * self._random.standard_normal(self.features.shape, np.float32)
        self.features[:, 0] = logits.argmax(axis=1)


def main() -> None:
    parser = actor.arguments(__doc__)
    parser.add_argument("--index", type=int, required=True)
    parser.add_argument("--tenant", required=True)
    parser.add_argument("--environments", type=int, required=True)
    options = parser.parse_args()
    actor.begin(f"rl-sampler-{options.index}", options.parent)
    queue, own = SlotQueue(options.queue), Account()
    environments = Environments(options.environments, seed=options.index)
    tenants = {options.tenant: options.environments}
    while not queue.is_open(options.index) and not actor.stopping():
        pass
    while not actor.stopping():
        with own.timed("sample", tenants), stepmark.step("sample", tenants=tenants):
            slots = queue.post(options.index, options.tenant, environments.features)
            logits = queue.collect(options.index, slots)
        environments.act(logits)
    account.write(own.rows, sys.stdout)


if __name__ == "__main__":
    main()
