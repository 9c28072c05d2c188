"""A node whose state is known: two tenants, one of them in trouble, under any names."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import numpy as np

from exporters.access import Access
from exporters.live import Live
from exporters.prometheus import Page
from exporters.server import Address, serving
from tracer import catalog
from tracer.catalog import CAUSES
from tracer.host.facts import Known, Unknown
from tracer.judge import doctor
from tracer.judge.overview import overview
from tracer.judge.placement import Placement, judge
from tracer.ledger.histogram import EDGES_SECONDS
from tracer.ledger.stalls import StallRow
from tracer.ledger.summary import RecentRow, SlowStep, Summary
from tracer.memory.first_touch import FirstTouch, Toucher
from tracer.memory.numastat import Counts, Drift, Trend
from tracer.memory.pages import Pages
from tracer.memory.process import ProcessMemory
from tracer.memory.segments import Segment
from tracer.memory.watch import MemoryState, TargetMemory
from tracer.model import (
    Aggressor,
    Capability,
    Family,
    Histogram,
    Stall,
    StalledThread,
    Target,
)

MS = 1e-3


@dataclass(frozen=True)
class Names:
    victim: str = "chat"
    quiet: str = "batch"
    step: str = "decode"
    aggressor: str = "antagonist"
    node: str = "node-17"
    reason: str = "this kernel does not tell"
    segment: str = "queue"
    process: str = "engine"


def causes(**seconds: float) -> dict[str, float]:
    return {cause.name: seconds.get(cause.name, 0.0) for cause in CAUSES}


def summary(names: Names) -> Summary:
    """The victim waits 12 % of its time, the quiet tenant nearly never."""
    rows = [
        RecentRow(
            tenant=tenant,
            step=names.step,
            is_stage=False,
            count=4_000,
            p50=10 * MS,
            p99=30 * MS,
            p999=62 * MS,
            seconds=causes(running=40, preempted=wait, runqueue=0.1),
        )
        for tenant, wait in ((names.victim, 5.4), (names.quiet, 0.2))
    ]
    slow = SlowStep(
        number=4711,
        parent=0,
        step=names.step,
        tenant=names.victim,
        shares={names.victim: 1.0},
        target=1,
        tid=77,
        end_ns=0,
        elapsed=62 * MS,
        seconds=causes(running=12 * MS, preempted=50 * MS),
        median=10 * MS,
        typical=causes(running=9.5 * MS, runqueue=0.5 * MS),
        switches=2,
        involuntary=1,
        migrations=0,
        worst=None,
        aggressors=(Aggressor(names.aggressor, 3, 4, names.aggressor[:15], 49 * MS),),
        blame_rest=1 * MS,
        helper_wait=0.0,
        helper_worst=0.0,
    )
    return Summary(
        seconds=3600.0,
        window_seconds=60,
        steps=8_000,
        rows=(),
        recent=tuple(rows),
        blame=(),
        slowest=(slow,),
        stalls=(StallRow(scope="all", count=1, seconds=0.4, longest=0.4),),
        longest_stalls=(stall(names),),
        outside={},
        lost={"torn": 1, "ring_full": 0, "page_bad_magic": 7},
        cannot_tell={"fault": names.reason},
        unix_offset_ns=0,
        bare_metal=False,
    )


def stall(names: Names) -> Stall:
    """The whole machine stood still, in the middle of a step."""
    return Stall(
        begin_ns=1_000_000_000,
        uncertain_ns=2_000_000,
        end_ns=1_400_000_000,
        stolen_ns=0,
        scope="all",
        cpus=(0, 1),
        running=(),
        chance=1e-12,
        hit=(StalledThread(tenant=names.victim, pid=70, tid=77, step=9, cpu=0, lost_ns=4 * 10**8),),
    )


def placement(names: Names) -> Placement:
    """Threads run on node 1, most memory is on node 0."""
    pages = Pages({0: 900, 1: 100})
    engine = TargetMemory(
        Target(1, 70, 0, names.process, names.victim),
        {1: 5.0},
        Known(ProcessMemory(Known(pages), {}, {}, {}, Known(0))),
        Unknown("bound to nothing"),
        Known(frozenset()),
        cost_seconds=0.001,
    )
    shared = Segment(
        ((0, 26), 77), f"/dev/shm/{names.segment}", 4 << 20, (70,), pages, Known("default")
    )
    drift = {
        node: Drift(
            Counts(9_000 - 4_000 * node, 1_000, 9_000, 0),
            Trend(Known(0.1), Known(0.04)),
            Trend(Known(0.0), Known(0.0)),
        )
        for node in (0, 1)
    }
    touch = FirstTouch((Toucher(70, 71, names.process, 0, 900), Toucher(70, 70, "main", 1, 100)))
    state = MemoryState(60.0, Known({}), drift, (engine,), (shared,), {}, 0)
    return judge(state, first=Known({shared.identity: touch}))


def families(names: Names, publishing: int) -> list[Family]:
    """Trouble begins with the fourth publishing."""
    trouble = max(0, publishing - 3)
    counts = np.zeros(len(EDGES_SECONDS) + 1, np.int64)
    counts[2:5] = 100 * publishing
    counts[17] = 20 * trouble
    waits = {
        (names.victim, "preempted"): Histogram(counts, 0.02 * publishing + 0.2 * trouble),
        (names.quiet, "runqueue"): Histogram(counts // 9, 0.01 * publishing),
    }
    blame = {(names.victim, names.aggressor, "preempted"): 0.5 * trouble}
    return [
        Family(catalog.DESCHEDULE, waits, EDGES_SECONDS),
        Family(catalog.BLAME, blame),
        Family(catalog.STEAL, {("0",): 0.01 * publishing, ("1",): 0.3 * trouble}),
    ]


@contextmanager
def serving_node(names: Names, access: Access | None = None) -> Iterator[Address]:
    """An agent's port, and what stands for the agent's thread behind it: it publishes anew every
    time that somebody asks."""
    live, page, over = Live(names.node, fresh_seconds=0), Page(60), threading.Event()
    told = summary(names)
    diagnosis = doctor.examine()
    capabilities = [Capability("gpu", "none", names.reason), Capability("placement", "move_pages")]
    looked_at = placement(names)

    def be_the_agent() -> None:
        publishings = count()
        for _ in range(6):
            live.record(families(names, next(publishings)))
        while not over.wait(0.01):
            if live.wanted:
                live.record(families(names, next(publishings)))
                live.publish(lambda: overview(told, capabilities, looked_at, diagnosis, 10**9))

    agent = threading.Thread(target=be_the_agent)
    agent.start()
    try:
        with serving(("127.0.0.1", 0), page, live, access=access) as address:
            yield address
    finally:
        over.set()
        agent.join()
