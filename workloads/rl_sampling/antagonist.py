"""
The antagonist: a neighbour who needs every CPU he may use at once, again and again.

Started by the workload, with ``--antagonist`` only. He owns nothing, so he is simply killed.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from workloads.rl_sampling import actor
from workloads.rl_sampling.bursts import at_random, burn

BURSTS_PER_SECOND = 5.0
BURST_S = 0.030


def main() -> None:
    options = actor.arguments(__doc__).parse_args()
    actor.begin("antagonist", options.parent)
    cpus = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(cpus, thread_name_prefix="antagonist") as pool:
        at_random(BURSTS_PER_SECOND, lambda: list(pool.map(burn, [BURST_S] * cpus)), seed=0)


if __name__ == "__main__":
    main()
