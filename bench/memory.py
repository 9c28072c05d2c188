"""What a page fault and an allocation cost, by the kernel's own statistics."""

from __future__ import annotations

import os
from collections.abc import Callable

from bench.contenders import CONTENDERS, MEMORY_HOOKS
from bench.hooks import measured, ratio, rows
from bench.load import Shape, compiled, running
from bench.table import Section

_OURS = ("ours, untracked", "ours, tracked")
_METHOD = (
    "ns per run of the BPF programs on a hook, as above, while a thread touches new memory without "
    "pause in steps of 64 page faults. Where functions can be traced, a fault has two programs and "
    "the figure is that of each. Allocations are measured with the program for two nodes, whatever "
    "this machine has."
)


def measure(rounds: int, say: Callable[[str], None]) -> Section:
    contenders = {name: CONTENDERS[name] for name in ("empty", *_OURS)}
    cpu = max(os.sched_getaffinity(0))
    with compiled("faults") as load, running(load, Shape(), cpu) as pid:
        rounds_of, failed = measured(pid, contenders, MEMORY_HOOKS, rounds, say)
    table = rows(rounds_of, failed, contenders, MEMORY_HOOKS)
    table.append(ratio(rounds_of, "page fault", "ours, untracked", "empty", 2.0))
    table.append(ratio(rounds_of, "page allocation", "ours, untracked", "empty", 2.0))
    return Section("Memory", _METHOD, table)
