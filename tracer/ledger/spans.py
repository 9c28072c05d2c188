"""
Steps and long deschedules as spans on the tracks of a timeline.

A ledger tells how long each cause took, not when. So the causes of a step are on a track of their
own, end to end, the largest first, under the step that they add up to.

Of every second the longest of each are drawn, so a timeline of any load stays small.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tracer.catalog import CAUSES
from tracer.ledger.grouping import Positions, largest_of_each
from tracer.ledger.timeline import STEP_UNKNOWN
from tracer.ledger.totals import Totals
from tracer.model import Records, Span, Stall, Steps, Track, take_rows
from tracer.targets.text import visible

MOST_STEPS, MOST_DETAILED, MOST_WAITS = 2000, 100, 300
"""Of every second: steps and stages, those of them with causes and aggressors, deschedules."""

_SECOND = 1_000_000_000
_CAUSES, _WAITS, _CPUS = "where the time went", "without a CPU", "who ran while a step waited"
_STALLS = "CPUs that stood still"

MOST_STALLS = 100
"""At once: those that took longest."""

Spans = dict[Track, list[Span]]
Details = dict[str, str | int | float]


class Drawing:
    """What has been left out is counted in ``left_out``."""

    def __init__(self, totals: Totals, process_name: Callable[[int], str]) -> None:
        """
        :param totals: know the names of what is drawn
        :param process_name: of a target, by its index
        """
        self._totals, self._process_name = totals, process_name
        self.left_out = 0

    def of_steps(self, steps: Steps) -> Spans:
        """On the track of its thread each step and stage; of the slowest also the causes."""
        if not len(steps):
            return {}
        drawn = steps.take(self._longest(steps.end_ns, steps.elapsed_ns, MOST_STEPS))
        slowest = largest_of_each(drawn.elapsed_ns, MOST_DETAILED, drawn.end_ns // _SECOND)
        detailed = set(slowest.tolist())
        spans = defaultdict[Track, list[Span]](list)
        for i, row in enumerate(self._totals.largest_rows(drawn)):
            tenant, step = self._totals.labels_of(row)
            begin, end = int(drawn.begin_ns[i]), int(drawn.end_ns[i])
            details: Details = {"step": int(drawn.number[i]), "tenant": tenant}
            thread = self._thread(drawn.target[i], drawn.tid[i])
            if i in detailed:
                details |= self._aggressors(drawn.aggressors[i])
                if not drawn.parent[i]:
                    spans[*thread, _CAUSES] += _causes(drawn.ns[i], begin, end)
            spans[thread].append(Span(step, begin, end, details))
        return spans

    def of_outliers(self, outliers: Records, tenant: NDArray[np.int32]) -> Spans:
        """
        On the track of its thread each deschedule by its cause, and on that of the CPU who ran.

        :param outliers: (n,) ``struct outlier``
        :param tenant: (n,) whose they were, as in ``Totals.longest``
        """
        if not len(outliers):
            return {}
        ns, at = (outliers["wait"][name].astype(np.int64) for name in ("ns", "at_ns"))
        drawn = self._longest(at, ns, MOST_WAITS)
        spans = defaultdict[Track, list[Span]](list)
        for outlier, of in zip(take_rows(outliers, drawn), tenant[drawn].tolist(), strict=True):
            wait, thread = outlier["wait"], self._thread(outlier["process"], outlier["tid"])
            cause, by = CAUSES[wait["cause"]].name, visible(wait["by"]["comm"])
            begin, end = int(wait["at_ns"]) - int(wait["ns"]), int(wait["at_ns"])
            details = self._details(outlier, self._totals.names.tenants[of])
            spans[*thread, _WAITS].append(Span(cause, begin, end, details))
            cpu = f"CPU {outlier['cpu']}"
            spans[_CPUS, cpu].append(Span(by or cause, begin, end, details | {"cause": cause}))
        return spans

    def of_stalls(self, stalls: Sequence[Stall]) -> Spans:
        """On the track of each CPU that it stood still, on that of each thread what that lost."""
        drawn = sorted(stalls, key=lambda stall: -stall.lost_ns)[:MOST_STALLS]
        self.left_out += len(stalls) - len(drawn)
        spans = defaultdict[Track, list[Span]](list)
        for stall in drawn:
            details: Details = {"CPUs": len(stall.cpus), "stolen": stall.stolen_ns / 1e9}
            for cpu in stall.cpus:
                span = Span(f"stall of {stall.scope}", stall.begin_ns, stall.end_ns, details)
                spans[_STALLS, f"CPU {cpu}"].append(span)
            for hit in stall.hit:
                of: Details = {"tenant": hit.tenant, "cpu": hit.cpu, "process": hit.pid}
                if hit.step:
                    of["step"] = hit.step
                lost = Span("stall", stall.end_ns - hit.lost_ns, stall.end_ns, of)
                spans[_STALLS, f"thread {hit.tid}"].append(lost)
        return spans

    def _details(self, outlier: np.void, tenant: str) -> Details:
        details: Details = {"tenant": tenant, "cpu": int(outlier["cpu"])}
        details["thread that waited"] = int(outlier["tid"])
        if outlier["wait"]["by"]["tid"]:
            details["thread that ran"] = int(outlier["wait"]["by"]["tid"])
        if outlier["step"] not in (0, STEP_UNKNOWN):
            details["step"] = int(outlier["step"])
        return details

    def _longest(self, at_ns: NDArray[np.int64], ns: NDArray[np.int64], most: int) -> Positions:
        """The longest of each second, in the order given."""
        longest: Positions = np.sort(largest_of_each(ns, most, at_ns // _SECOND))
        self.left_out += len(ns) - len(longest)
        return longest

    def _thread(self, target: np.integer, tid: np.integer) -> Track:
        return self._process_name(int(target)), f"thread {tid}"

    def _aggressors(self, aggressors: Records) -> Details:
        """Seconds that others ran, by name."""
        some = take_rows(aggressors, aggressors["ns"] > 0)
        names = self._totals.blame.name_runners(some["who"])
        seconds: dict[str, float] = defaultdict(float)  # a name may be that of several threads
        for name, ns in zip(names, some["ns"].tolist(), strict=True):
            seconds[f"{name} ran"] += ns / 1e9
        return {**seconds}


def _causes(ledger: NDArray[np.int64], begin_ns: int, end_ns: int) -> Iterable[Span]:
    for cause in np.argsort(-ledger, kind="stable").tolist():
        ns = min(int(ledger[cause]), end_ns - begin_ns)
        if ns > 0:
            yield Span(CAUSES[cause].name, begin_ns, begin_ns + ns)
            begin_ns += ns
