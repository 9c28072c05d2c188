"""What each hook costs, by the kernel's own statistics."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from bench.contenders import CONTENDERS, HOOKS, Contender, Hooks, RunTimes, by_hook
from bench.load import Shape, compiled, running
from bench.spread import Spread
from bench.table import Row, Section
from tracer.errors import UnavailableError
from tracer.kernel.libbpf import count_run_time

_SECONDS = 1.0
_DRAIN_SECONDS = 0.1
_EXPIRIES = 1000
_METHOD = (
    "ns per run of the BPF programs on a hook (`kernel.bpf_stats_enabled`, the clock readings of "
    "the statistics included), while two threads play ping-pong over pipes on one CPU, each in "
    "steps of 50 round trips. All contenders in turn, round after round; median and quartiles over "
    "the rounds. The statistics are of the whole machine: what else runs is in them. Interrupts "
    "and timers are per entry or exit, and an expiry of a timer has one of each."
)

Costs = dict[str, float]
"""Hook -> ns per run, of the hooks that ran."""


def measure(rounds: int, say: Callable[[str], None]) -> Section:
    cpu = max(os.sched_getaffinity(0))
    with compiled("load") as load, running(load, Shape(), cpu) as pid:
        rounds_of, failed = measured(pid, CONTENDERS, HOOKS, rounds, say)
    return Section("Hooks", _METHOD, rows(rounds_of, failed) + against(rounds_of))


def measured(
    pid: int,
    contenders: Mapping[str, Contender],
    hooks: Hooks,
    rounds: int,
    say: Callable[[str], None],
) -> tuple[dict[str, list[Costs]], dict[str, str]]:
    """Contender -> what its programs cost, round by round; and why the others could not run."""
    rounds_of: dict[str, list[Costs]] = defaultdict(list)
    failed: dict[str, str] = {}
    for number in range(rounds):
        for name, contender in contenders.items():
            if name in failed:
                continue
            say(f"{', '.join(hooks)}: round {number + 1} of {rounds}: {name}")
            try:
                rounds_of[name].append(_costs(contender, pid, hooks))
            except UnavailableError as e:
                failed[name] = str(e)
    return rounds_of, failed


def _costs(contender: Contender, pid: int, hooks: Hooks) -> Costs:
    statistics = count_run_time()
    try:
        with contender(pid) as times:
            before = by_hook(times(), hooks)
            return per_run(before, by_hook(_after(_SECONDS, times), hooks))
    finally:
        os.close(statistics)


def _after(seconds: float, times: Callable[[], RunTimes]) -> RunTimes:
    """Asked now and then meanwhile, because asking also drains."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(_DRAIN_SECONDS)
        latest = times()
    return latest


def per_run(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> Costs:
    deltas = {hook: (after[hook][0] - ns, after[hook][1] - n) for hook, (ns, n) in before.items()}
    return {hook: ns / runs for hook, (ns, runs) in deltas.items() if runs}


def rows(
    rounds_of: Mapping[str, list[Costs]],
    failed: Mapping[str, str],
    contenders: Iterable[str] = CONTENDERS,
    hooks: Iterable[str] = HOOKS,
) -> list[Row]:
    table = []
    for hook in hooks:
        for name in contenders:
            costs = [costs[hook] for costs in rounds_of.get(name, []) if hook in costs]
            if costs:
                table.append(Row(f"{hook}: {name}", "ns", Spread.quartiles(costs)))
            elif name in failed and hook == next(iter(hooks)):
                table.append(Row.unavailable(name, "ns", failed[name]))
    return table


def against(rounds_of: Mapping[str, list[Costs]]) -> list[Row]:
    ours, theirs = "ours, tracked", "libbpf-tools runqlat"
    return [
        ratio(rounds_of, "switch", "ours, untracked", "empty", 2.0),
        ratio(rounds_of, "switch", ours, "empty", 3.5),
        ratio(rounds_of, "switch + wakeup", ours, theirs, 0.5),
        _timers(rounds_of, ours),
    ]


def _timers(rounds_of: Mapping[str, list[Costs]], name: str) -> Row:
    """Entry and exit of so many expiries, of each second."""
    what = f"timer: {name}, of a CPU with {_EXPIRIES:,} expiries a second"
    shares = [
        100 * 2 * c["timer"] * _EXPIRIES / 1e9 for c in rounds_of.get(name, []) if "timer" in c
    ]
    if not shares:
        return Row.unavailable(what, "%", "no timer expired")
    return Row(what, "%", Spread.quartiles(shares), 0.05)


def ratio(rounds_of: Mapping[str, list[Costs]], hooks: str, a: str, b: str, budget: float) -> Row:
    """Round by round, so that what slows down all of a round counts less."""
    what, of = f"{hooks}: {a} / {b}", hooks.split(" + ")
    pairs = zip(rounds_of.get(a, []), rounds_of.get(b, []), strict=False)
    ratios = [sum(ours[h] for h in of) / sum(theirs[h] for h in of) for ours, theirs in pairs]
    if not ratios:
        return Row.unavailable(what, "x", "one of the two could not be measured")
    return Row(what, "x", Spread.quartiles(ratios), budget)
