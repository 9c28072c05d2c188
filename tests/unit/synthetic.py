"""
Samples of machines whose truth is known.

Durations are a lognormal body and a Pareto tail. Windows differ, as they do on real machines: the
body's level and the rate wander from one to the next, and a window has few or many of the tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from tests.unit.recorded import meta
from tracer.catalog import CAUSES
from tracer.judge.migration.distribution import Distribution
from tracer.judge.migration.sample import Sample
from tracer.ledger.books import CAUSE_AT
from tracer.ledger.histogram import BUCKETS, bucket_of
from tracer.record.meta import Machine, MachineKind

WINDOW = 10.0


@dataclass(frozen=True)
class Durations:
    median: float
    spread: float = 0.1
    """Of the logarithm of the body."""

    tail: float = 0.004
    """Part of all that is in the tail."""

    tail_from: float = 0.02
    steepness: float = 2.0
    """Of the tail; 1 has no mean."""

    per_window: float = 300
    level: float = 0.03
    """How far the body's level wanders, of its logarithm; the rate as far."""

    alike: float = 0.3
    """Correlation of neighbouring windows."""

    bursts: float = 1.0
    """Coefficient of variation of the tail's part from window to window."""

    def quantile(self, q):
        """The truth, by bisection."""
        body = NormalDist(math.log(self.median), math.hypot(self.spread, self.level))

        def beyond(x):
            tail = min(1.0, (self.tail_from / x) ** self.steepness)
            return (1 - self.tail) * (1 - body.cdf(math.log(x))) + self.tail * tail

        low, high = 1e-6, 1e3
        for _ in range(100):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if beyond(middle) > 1 - q else (low, middle)
        return low

    @property
    def rate(self):
        return self.per_window / WINDOW

    def sample(self, rng, windows):
        level, rate = (self._wander(rng, windows) for _ in range(2))
        count = rng.poisson(self.per_window * np.exp(self.level * rate - self.level**2 / 2))
        window = np.repeat(np.arange(windows), count)
        body = rng.normal(math.log(self.median), self.spread, len(window))
        seconds = np.exp(body + self.level * level[window])
        bursts = max(self.bursts, 1e-6) ** 2
        part = np.minimum(self.tail * rng.gamma(1 / bursts, bursts, windows), 1)
        tail = np.flatnonzero(rng.random(len(window)) < part[window])
        seconds[tail] = self.tail_from * (1 - rng.random(len(tail))) ** (-1 / self.steepness)
        return distribution(windows, window, seconds)

    def _wander(self, rng, windows):
        steps = rng.normal(0, math.sqrt(1 - self.alike**2), windows)
        steps[0] = rng.normal()
        for at in range(1, windows):
            steps[at] += self.alike * steps[at - 1]
        return steps


def distribution(windows, window, seconds, sums=True):
    cell = window * BUCKETS + bucket_of((seconds * 1e9).astype(np.int64))
    count = np.bincount(cell, minlength=windows * BUCKETS)
    some = np.flatnonzero(count)
    of = np.bincount(cell, seconds, windows * BUCKETS)[some] if sums else None
    return Distribution(windows, *np.divmod(some, BUCKETS), count[some], of)


STEPS = Durations(median=0.010)
DESCHEDULES = Durations(median=5e-5, spread=0.5, tail=0.002, tail_from=2e-4, per_window=2000)


def machine(kind=MachineKind.BARE_METAL, **changed):
    fields = {"kernel": "6.12.0", "cpu_model": "a CPU", "cpus": 84, "numa_nodes": 2}
    return Machine(kind=kind, **(fields | changed))


def sample(rng, windows=180, steps=STEPS, deschedules=DESCHEDULES, on=None, **changed):
    """Of one tenant with one kind of step; what it waited for is all ``preempted``."""
    times = steps.sample(rng, windows)
    causes = np.zeros((windows, len(CAUSES)))
    whole = np.bincount(times.window, times.seconds, windows)
    causes[:, CAUSE_AT["running"]], causes[:, CAUSE_AT["preempted"]] = 0.9 * whole, 0.1 * whole
    fields = {
        "meta": meta(machine=on or machine()),
        "seconds": np.full(windows, WINDOW),
        "steps": times.by_window,
        "elapsed": {("chat", "decode"): times},
        "stages": frozenset(),
        "deschedules": {"chat": deschedules.sample(rng, windows)},
        "queue_waits": {},
        "causes": causes,
        "lost": {},
    }
    return Sample(**(fields | changed))
