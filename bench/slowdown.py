"""How much slower a program that does nothing but switch becomes under the tracer."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from bench.contenders import attached, track
from bench.load import Shape, Usage, compiled, running, usage
from bench.spread import Spread
from bench.table import Row, Section

_SECONDS = 0.4
_PAIRS_PER_ROUND = 6
_BUDGETS = {False: 1.0, True: 3.0}
_METHOD = (
    "CPU time per switch of two threads that play ping-pong over pipes on one CPU, by the kernel's "
    "own account (`schedstat`), so that what else runs on that CPU does not count. Pairs of 0.4 s "
    "without and with the kernel side attached, the order changing from pair to pair; median of "
    "the pairs' quotients with its 95 % interval (bootstrap). Within noise: the interval has 0 in "
    "it."
)


def measure(rounds: int, say: Callable[[str], None]) -> Section:
    pairs = rounds * _PAIRS_PER_ROUND
    cpu = max(os.sched_getaffinity(0))
    with compiled("load") as load, running(load, Shape(), cpu) as pid:
        rows = []
        for tracked, budget in _BUDGETS.items():
            say(f"slowdown: {pairs} pairs, {_name(tracked)}")
            percent = [_pair(pid, tracked, with_first=bool(n % 2)) for n in range(pairs)]
            rows.append(row(_name(tracked), percent, budget))
    return Section("Slowdown of a ping-pong", _METHOD, rows)


def row(name: str, percent: list[float], budget: float) -> Row:
    spread = Spread.confidence(percent)
    return Row(f"slowdown, {name}", "%", spread, budget, spread.low <= 0 <= spread.high)


def _name(tracked: bool) -> str:
    return "tracked" if tracked else "untracked"


def _pair(pid: int, tracked: bool, with_first: bool) -> float:
    """By how much a switch took longer, in per cent."""
    if with_first:
        slow = _with_tracer(pid, tracked)
        fast = _ns_per_switch(pid)
    else:
        fast = _ns_per_switch(pid)
        slow = _with_tracer(pid, tracked)
    return (slow / fast - 1) * 100


def _with_tracer(pid: int, tracked: bool) -> float:
    with attached() as kernel:
        if tracked:
            track(kernel, pid)
        return _ns_per_switch(pid, kernel.pieces)


def _ns_per_switch(pid: int, meanwhile: Callable[[], object] = lambda: None) -> float:
    """``meanwhile`` is called as often as the agent drains."""
    before, end = usage(pid), time.monotonic() + _SECONDS
    while time.monotonic() < end:
        time.sleep(_SECONDS / 4)
        meanwhile()
    return ns_per_switch(usage(pid) - before)


def ns_per_switch(used: Usage) -> float:
    return used.cpu_ns / used.switches
