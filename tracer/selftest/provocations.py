"""How each cause is provoked, and why some cannot be."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any

from tracer.catalog import CAUSES, Group
from tracer.kernel.btf import Btf
from tracer.selftest.groups import cpu_group
from tracer.selftest.interrupts import interrupting
from tracer.selftest.observer import Observer
from tracer.selftest.verdict import Seen
from tracer.selftest.victim import Victim

NOT_PROVOKED: Mapping[str, str] = {
    "numa_migrate": "it takes NUMA balancing, which begins when it likes",
    "steal": "only the hypervisor can take the CPU away",
    "stall": "only the hypervisor can stop the CPU",
    "gpu": "it takes an accelerator and work for it",
}

_TAKEN = ("irq", "softirq", "fault")
_NESTED = {"irq": ("steal", "stall"), "softirq": ("irq", "steal", "stall")}
_WAITED = tuple(cause.name for cause in CAUSES if cause.group is Group.WAITED)


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

    interrupted: bool = False
    """By interrupts on the victim's CPU, of the cause's kind."""


def provocations(cpu: int, has_rt_budget: bool) -> list[Provocation]:
    """
    One for each cause that can be provoked, on one CPU.

    :param has_rt_budget: groups have a real-time budget; else that of the machine must do
    """
    if has_rt_budget:
        rt_limit = Provocation("rt_limit", ("spin_fifo", cpu, 1.7), rt_budget=0.5)
    else:
        rt_limit = Provocation("rt_limit", ("spin_fifo", cpu, 2.5), rival=("spin", cpu, 3))
    return [
        Provocation("preempted", ("spin_against", cpu, 1), rival=("spin", cpu, 1.5)),
        Provocation("runqueue", ("wake_late", cpu, 1), rival=("spin", cpu, 1.5)),
        Provocation("quota", ("spin", cpu, 1), quota=0.3),
        rt_limit,
        Provocation("lock", ("futex", 100, 5)),
        Provocation("io", ("disk", 64)),
        Provocation("fault_io", ("fault", 64)),
        Provocation("net", ("pipe", 100, 5)),
        Provocation("sleep", ("sleep", 100, 5)),
        Provocation("irq", ("watch", cpu, 2), interrupted=True),
        Provocation("softirq", ("watch", cpu, 2), interrupted=True),
        Provocation("fault", ("huge_pages", 32, 8)),
    ]


def provoke(how: Provocation, cpu: int, observer: Observer, precision: float = 0.01) -> Seen:
    """
    Let it happen, and return what the victim and the kernel side say of it.

    Raises UnavailableError when it cannot happen here.

    :param precision: share by which the two may differ
    """
    lost = Counter(observer.kernel.lost())
    with ExitStack() as undo:
        group, interrupts = None, None
        if how.interrupted:
            interrupts = undo.enter_context(interrupting(how.cause, cpu))
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
        if interrupts:
            interrupts.start(victim.pid)
        account = victim.account(group.lift if group else lambda: None)
        least = None
        if group and how.quota:
            least = group.throttled_seconds()
        if interrupts:
            least = interrupts.taken()
    truth, beside = truth_of(how.cause, account)
    return Seen(
        cause=how.cause,
        truth=truth,
        beside=beside,
        least=least,
        nested=_NESTED.get(how.cause, ()),
        seconds=observer.seconds(victim.pid),
        waits=int(observer.work(victim.pid)["switches"].sum()),
        precision=precision,
        rival=account["saw"] / 1e9 if against else None,
        blamed=observer.blame(victim.pid).get(rival.pid, 0.0) if rival else 0.0,
        lost=Counter(observer.kernel.lost()) - lost,
    )


def truth_of(cause: str, account: Mapping[str, Any]) -> tuple[float, tuple[str, ...]]:
    """
    Seconds by the victim's account, and the causes that are in them as well.

    A thread that wanted a CPU and had none was in the kernel's run queue, even while that CPU was
    away itself; the rest of the time without a CPU it waited for something else. What takes the CPU
    and not the thread from it, the thread sees by itself.
    """
    without, queued = account["waited_ns"] / 1e9, account["run_delay_ns"] / 1e9
    if cause in _TAKEN:
        return account["saw"] / 1e9, ("preempted", "runqueue", "irq", "softirq", "steal", "stall")
    if cause == "runqueue":
        return queued, ("preempted", "steal", "stall")
    if cause in _WAITED:
        return without - queued, left_out_of_cpu_time()
    return without, ("preempted", "runqueue", "stall", *left_out_of_cpu_time())


@cache
def left_out_of_cpu_time() -> tuple[str, ...]:
    """Causes on the CPU for which this kernel stops a thread's CPU clock."""
    kernel = Btf.of_kernel()
    left_out: tuple[str, ...] = ()
    if kernel.has_field("rq", "prev_irq_time"):  # CONFIG_IRQ_TIME_ACCOUNTING
        left_out += ("irq", "softirq")
    if kernel.has_field("rq", "prev_steal_time_rq"):  # CONFIG_PARAVIRT_TIME_ACCOUNTING
        left_out += ("steal",)
    return left_out
