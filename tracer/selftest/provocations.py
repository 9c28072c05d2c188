"""How each cause is provoked, and why some cannot be."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from tracer.selftest.groups import cpu_group
from tracer.selftest.observer import Observer
from tracer.selftest.verdict import Seen
from tracer.selftest.victim import Victim

NOT_PROVOKED: Mapping[str, str] = {
    "irq": "it takes a device that interrupts on demand",
    "softirq": "it takes a device that interrupts on demand",
    "fault": "the kernel keeps no account of its own to compare with",
    "steal": "only the hypervisor can take the CPU away",
    "stall": "only the hypervisor can stop the CPU",
    "gpu": "it takes an accelerator and work for it",
}


@dataclass(frozen=True, slots=True)
class Provocation:
    """A victim, and what it needs around it for something to happen to it."""

    cause: str
    victim: tuple[object, ...]
    """What it is (``tracer.selftest.victims``) and its arguments."""

    rival: tuple[object, ...] = ()
    """Another one, beside it."""

    quota: float | None = None
    """Of the victim's group, in CPUs."""

    rt_budget: float | None = None
    """Of the victim's group, share of a CPU."""


def provocations(cpu: int, has_rt_budget: bool) -> list[Provocation]:
    """
    One for each cause that can be provoked, on one CPU.

    :param has_rt_budget: groups have a real-time budget; else that of the machine must do
    """
    if has_rt_budget:
        rt_limit = Provocation("rt_limit", ("spin_fifo", cpu, 1.7), rt_budget=0.5)
    else:
        rt_limit = Provocation("rt_limit", ("spin_fifo", cpu, 2.5), rival=("spin", cpu, 3))
    awake = ("keep_awake", cpu, 30)
    return [
        Provocation("preempted", ("spin_against", cpu, 1), rival=("spin", cpu, 1.5)),
        Provocation("runqueue", ("wake_late", cpu, 1), rival=("spin", cpu, 1.5)),
        Provocation("quota", ("spin", cpu, 1), quota=0.3),
        rt_limit,
        Provocation("lock", ("futex", 100, 5), rival=awake),
        Provocation("io", ("disk", 64), rival=awake),
        Provocation("fault_io", ("fault", 64), rival=awake),
        Provocation("net", ("pipe", 100, 5), rival=awake),
        Provocation("sleep", ("sleep", 100, 5), rival=awake),
    ]


def provoke(how: Provocation, cpu: int, observer: Observer) -> Seen:
    """
    Let it happen, and return what the victim and the kernel side say of it.

    Raises UnavailableError when it cannot happen here.
    """
    lost = Counter(observer.kernel.lost())
    with ExitStack() as undo:
        group = None
        if how.quota is not None or how.rt_budget is not None:
            group = undo.enter_context(cpu_group(how.quota, how.rt_budget))
        rival = undo.enter_context(Victim(*map(str, how.rival))) if how.rival else None
        against = (rival.pid,) if rival and how.victim[0] == "spin_against" else ()
        victim = undo.enter_context(Victim(*map(str, (*how.victim, *against))))
        os.sched_setaffinity(victim.pid, {cpu})
        observer.follow(victim.pid)
        if group:
            group.add(victim.pid)
        for process in (rival, victim):
            if process:
                process.go()
        account = victim.account()
    return Seen(
        cause=how.cause,
        truth=_truth(how.cause, account),
        seconds=observer.seconds(victim.pid),
        waits=int(observer.work(victim.pid)["switches"].sum()),
        rival=account["saw"] / 1e9 if against else None,
        blamed=observer.blame(victim.pid).get(rival.pid, 0.0) if rival else 0.0,
        lost=Counter(observer.kernel.lost()) - lost,
    )


def _truth(cause: str, account: Mapping[str, Any]) -> float:
    """Seconds: of one that sleeps how late it woke, of all others when they had no CPU."""
    if cause == "runqueue":
        ns = sum(woke - asked for asked, woke in account["saw"])
    else:
        ns = account["waited_ns"]
    return float(ns / 1e9)
