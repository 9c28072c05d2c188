"""
``python -m workloads.steady``: one thread, steps of the same work at the same pace.

Whatever one step has and another has not, the machine did. Most of a CPU stays idle, so emulated
ones are fast enough.
"""

from __future__ import annotations

import argparse
import time

import stepmark

TENANT, STEP = "steady", "compute"
ROUNDS, WAIT_S = 8, 0.0001
"""Of a step: work, then a wait as for a peer's answer, after which the thread wants a CPU again."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m workloads.steady",
        description="One thread, steps of the same work at the same pace.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--duration", type=float, default=30, help="seconds")
    parser.add_argument("--period-ms", type=float, default=20, help="from begin to begin")
    parser.add_argument("--work", type=int, default=8_000, help="multiplications in a step")
    options = parser.parse_args()
    print(f"{run(options.duration, options.period_ms / 1e3, options.work):,} steps")


def run(duration_s: float, period_s: float, work: int) -> int:
    """Returns the number of steps. One that begins late moves all that follow."""
    begin = due = time.monotonic()
    steps = 0
    while due < begin + duration_s:
        time.sleep(max(0.0, due - time.monotonic()))
        _step(work)
        steps += 1
        due = max(due + period_s, time.monotonic())
    return steps


def _step(work: int) -> None:
    with stepmark.step(STEP, tenants=TENANT):
        for _ in range(ROUNDS):
            _multiply(work // ROUNDS)
            time.sleep(WAIT_S)


def _multiply(times: int) -> int:
    value = 1
    for _ in range(times):
        value = value * 48_271 % 0x7FFF_FFFF
    return value


if __name__ == "__main__":
    main()
