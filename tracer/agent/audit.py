"""The books of what runs now, held against the kernel's own for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from tracer.agent.kernel_side import kernel_side
from tracer.agent.pages import Pages
from tracer.config import Config
from tracer.errors import UnavailableError
from tracer.host.counters import of_threads
from tracer.host.machine import Machine
from tracer.judge.books import ThreadBooks, of_thread
from tracer.ledger.labels import Labels
from tracer.model import join_records
from tracer.targets.processes import Processes

_DRAIN_SECONDS = 0.1


def audit(
    config: Config, processes: Processes, seconds: float, say: Callable[[str], None]
) -> tuple[list[ThreadBooks], Mapping[str, int]]:
    """
    The books of every thread of a target that lives all through these seconds, and what was lost.

    Raises UnavailableError without any target.
    """
    with kernel_side(config, Machine.read()) as kernel:
        pages = Pages(kernel, Labels(config.tenants.max))
        pages.follow(processes.scan())
        targets = list(pages.targets.values())
        if not targets:
            raise UnavailableError(
                "nothing here marks steps: start an engine, or name processes in --config"
            )
        before = {target.pid: of_threads(target.pid) for target in targets}
        say(f"following {sum(map(len, before.values()))} threads for {seconds:g} s")
        pieces, end = [kernel.pieces()], time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(_DRAIN_SECONDS)
            pieces.append(kernel.pieces())
        after = {target.pid: of_threads(target.pid) for target in targets}
        pages.forget(targets)  # closes the pieces that are open
        everything = join_records([*pieces, kernel.pieces()])
        lost = kernel.lost()
    books = [
        of_thread(pid, tid, counters, after[pid][tid], everything[everything["tid"] == tid])
        for pid, threads in before.items()
        for tid, counters in threads.items()
        if tid in after[pid]
    ]
    return books, lost
