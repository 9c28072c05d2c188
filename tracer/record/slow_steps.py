"""Slow steps as they are recorded, by name, and back into a batch of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.catalog import CAUSES, EVENTS
from tracer.kernel.btf import wire
from tracer.ledger.books import CAUSE_AT
from tracer.ledger.counts import EVENT_AT
from tracer.ledger.totals import Totals
from tracer.model import Names, Records, Steps
from tracer.record.window import RecordedStep, Runner, Wait

_PIECE, _LIMITS = wire().dtype("piece"), wire().enum("limits") | wire().enum("stepmark_limits")
_SHARES = _LIMITS["STEPMARK_SHARES"]
_PLAIN = {
    **dict.fromkeys(("target", "tid", "slot", "switches", "involuntary", "migrations"), np.uint32),
    **dict.fromkeys(("number", "parent"), np.uint64),
    **dict.fromkeys(("begin_ns", "end_ns", "helper_wait_ns", "helper_worst_ns"), np.int64),
    "blame_rest_ns": np.int64,
}
"""Columns of numbers that are recorded as they are."""


def recorded(totals: Totals, steps: Steps) -> list[RecordedStep]:
    """The steps, with the names under which the totals count them."""
    kinds = [totals.labels_of(row)[1] for row in totals.largest_rows(steps)]
    return [
        RecordedStep(
            **{name: int(getattr(steps, name)[i]) for name in _PLAIN},
            kind=kind,
            shares=_shares(totals, steps, i),
            ns={cause.name: int(n) for cause, n in zip(CAUSES, steps.ns[i], strict=True) if n},
            events={e.name: int(k) for e, k in zip(EVENTS, steps.events[i], strict=True) if k},
            worst=wait_of(steps.worst[i]) if steps.worst[i]["ns"] else None,
            aggressors=_aggressors(totals, steps.aggressors[i]),
        )
        for i, kind in enumerate(kinds)
    ]


def _shares(totals: Totals, steps: Steps, i: int) -> tuple[tuple[str, float], ...]:
    served = np.flatnonzero(steps.tenant[i] >= 0)
    numbers = totals.tenants.numbers(steps.tenant[i][served], totals.names.tenants)
    names = [totals.tenants.names[number] for number in numbers]
    return tuple(zip(names, steps.share[i][served].tolist(), strict=True))


def wait_of(wait: np.void) -> Wait:
    cause = int(wait["cause"])
    return Wait(
        ns=int(wait["ns"]),
        at_ns=int(wait["at_ns"]),
        cause=CAUSES[cause].name if cause < len(CAUSES) else "",
        syscall=int(wait["syscall"]),
        by=_runner(wait["by"], ""),
    )


def _aggressors(totals: Totals, aggressors: Records) -> tuple[tuple[Runner, int], ...]:
    some = aggressors[aggressors["ns"] > 0]
    names = totals.blame.name_runners(some["who"])
    who = [_runner(runner, name) for runner, name in zip(some["who"], names, strict=True)]
    return tuple(zip(who, some["ns"].tolist(), strict=True))


def _runner(who: np.void, name: str) -> Runner:
    numbers = {field: int(who[field]) for field in ("cgroup_id", "tgid", "tid")}
    return Runner(name=name, comm=who["comm"].decode(errors="replace"), **numbers)


class RunnerNames:
    """``struct runner`` -> the name it was recorded with."""

    def __init__(self) -> None:
        self._names: dict[object, str] = {}

    def __call__(self, runners: Records) -> Sequence[str]:
        return [self._names[runner.item()] for runner in runners]

    def add(self, runner: np.void, name: str) -> None:
        self._names[runner.item()] = name


def restored(
    recorded: Sequence[RecordedStep], names: Names, remember: Callable[[np.void, str], None]
) -> Steps:
    """
    One batch of steps again. ``names`` grows by what is missing.

    :param remember: is called with each ``struct runner`` and its name
    """
    n = len(recorded)
    plain: dict[str, Any] = {
        name: np.array([getattr(step, name) for step in recorded], dtype)
        for name, dtype in _PLAIN.items()
    }
    steps = Steps(
        **plain,
        kind=np.array([number_of(names.kinds, r.kind) for r in recorded], np.int32),
        tenant=np.full((n, _SHARES), -1, np.int32),
        share=np.zeros((n, _SHARES)),
        ns=np.zeros((n, len(CAUSES)), np.int64),
        events=np.zeros((n, len(EVENTS)), np.int64),
        worst=np.zeros(n, _PIECE["worst"]),
        aggressors=np.zeros((n, _LIMITS["NR_AGGRESSORS"]), _PIECE["aggressors"].base),
    )
    for i, step in enumerate(recorded):
        for at, (tenant, share) in enumerate(step.shares):
            steps.tenant[i, at], steps.share[i, at] = number_of(names.tenants, tenant), share
        for cause, ns in step.ns.items():
            steps.ns[i, CAUSE_AT[cause]] = ns
        for event, k in step.events.items():
            steps.events[i, EVENT_AT[event]] = k
        if step.worst:
            steps.worst[i] = wait_record(step.worst)
        for at, (who, ns) in enumerate(step.aggressors):
            steps.aggressors[i, at] = (_runner_record(who), ns)
            remember(steps.aggressors[i, at]["who"], who.name)
    return steps


def wait_record(wait: Wait) -> tuple[object, ...]:
    return wait.at_ns, wait.ns, CAUSE_AT[wait.cause], wait.syscall, _runner_record(wait.by)


def _runner_record(who: Runner) -> tuple[int, int, int, bytes]:
    return who.cgroup_id, who.tgid, who.tid, who.comm.encode()


def number_of(names: list[str], name: str) -> int:
    if name not in names:
        names.append(name)
    return names.index(name)
