"""How much slower a program that does nothing but switch becomes under the tracer."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from bench.contenders import CONTENDERS, Contender
from bench.load import Shape, compiled, cpu_ns, running, switches
from bench.spread import Spread
from bench.table import Row, Section
from tracer.errors import UnavailableError

_SECONDS = 0.4
_PAIRS_PER_ROUND = 6
_BUDGETS = {
    "empty": None,
    "ours, untracked": 1.0,
    "ours, tracked": 3.0,
    "libbpf-tools runqlat": None,
}
_METHOD = (
    "CPU time per switch of two threads that play ping-pong over pipes on one CPU, by the CPU "
    "clock of their process, so that what else runs on that CPU does not count. Pairs of 0.4 s "
    "without and with a contender attached, the order changing from pair to pair; median of the "
    "pairs' quotients with its 95 % interval (bootstrap). Within noise: the interval has 0 in it."
)


def measure(rounds: int, say: Callable[[str], None]) -> Section:
    pairs = rounds * _PAIRS_PER_ROUND
    cpu = max(os.sched_getaffinity(0))
    with compiled("load") as load, running(load, Shape(), cpu) as pid:
        rows = []
        for name, budget in _BUDGETS.items():
            say(f"slowdown: {pairs} pairs: {name}")
            rows.append(_measured(name, pid, pairs, budget))
    return Section("Slowdown of a ping-pong", _METHOD, rows)


def _measured(name: str, pid: int, pairs: int, budget: float | None) -> Row:
    try:
        percent = [_pair(CONTENDERS[name], pid, with_first=bool(n % 2)) for n in range(pairs)]
    except UnavailableError as e:
        return Row.unavailable(name, "%", str(e))
    return row(name, percent, budget)


def row(name: str, percent: list[float], budget: float | None) -> Row:
    spread = Spread.confidence(percent)
    return Row(name, "%", spread, budget, spread.low <= 0 <= spread.high)


def _pair(contender: Contender, pid: int, with_first: bool) -> float:
    """By how much a switch took longer, in per cent."""
    if with_first:
        slow = _under(contender, pid)
        fast = _ns_per_switch(pid)
    else:
        fast = _ns_per_switch(pid)
        slow = _under(contender, pid)
    return (slow / fast - 1) * 100


def _under(contender: Contender, pid: int) -> float:
    with contender(pid) as times:
        return _ns_per_switch(pid, meanwhile=times)


def _ns_per_switch(pid: int, meanwhile: Callable[[], object] = lambda: None) -> float:
    """``meanwhile`` is called now and then: asking for its times also drains what is ours."""
    used, switched = cpu_ns(pid), switches(pid)
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        time.sleep(_SECONDS / 4)
        meanwhile()
    return (cpu_ns(pid) - used) / (switches(pid) - switched)
