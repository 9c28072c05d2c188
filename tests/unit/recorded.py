"""Totals fed with random drains, and recordings of them."""

from __future__ import annotations

import numpy as np

from tracer.catalog import CAUSES, DESCHEDULES, EVENTS, SCOPES
from tracer.kernel.btf import wire
from tracer.ledger.books import CAUSE_AT
from tracer.ledger.histogram import BUCKETS, bucket_of
from tracer.ledger.totals import Totals
from tracer.model import Names, Stall, StalledThread, Steps
from tracer.record.increments import Increments
from tracer.record.meta import Machine, MachineKind, Meta
from tracer.record.window import Answer

S = 1_000_000_000
PIECE = wire().dtype("piece")
OUTLIER = wire().dtype("outlier")
SHARES = 8


def meta(**changed):
    fields = {
        "agent_version": "0.1.0",
        "machine": Machine(
            kind=MachineKind.VIRTUAL, kernel="6.1.0", cpu_model="a CPU", cpus=88, numa_nodes=1
        ),
        "configuration": "window_seconds: 60\n",
        "capabilities": (),
        "cannot_tell": {"stall": "is not measured"},
        "window_seconds": 60,
        "max_tenants": 100,
        "started_ns": 0,
        "started_unix_ns": 1_800_000_000 * S,
    }
    return Meta(**(fields | changed))


class Drains:
    """An agent's totals, and what it is fed with: all random, of a few tenants and kinds."""

    def __init__(self, seed, max_tenants=100, started_ns=0):
        self.rng = np.random.default_rng(seed)
        self.names = Names(["decode", "prefill", "sample"], ["chat", "batch", "search", "other"])
        self.totals = Totals(
            self.names,
            lambda runners: [f"name of {comm.decode()}" for comm in runners["comm"]],
            started_ns,
            cannot_tell=meta().cannot_tell,
            max_tenants=max_tenants,
            unix_offset_ns=meta().started_unix_ns - meta().started_ns,
        )
        self.lost = {"mark_overrun": 0, "blame_migrated": 0}
        self.now_ns, self.number = started_ns, 0
        self.histograms = np.zeros((3, len(DESCHEDULES), BUCKETS + 1), np.uint64)
        self.increments = Increments(self.totals, self.lost, started_ns)

    def window(self, drains=4, steps=40):
        """What ten seconds of drains add to a recording."""
        for _ in range(drains):
            self.now_ns += 10 * S // drains - 1
            self.drain(int(self.rng.integers(0, steps)))
        self.now_ns += drains
        unix_ns = meta().started_unix_ns + self.now_ns
        return self.increments.take(self.lost, self.now_ns, unix_ns, self.answers())

    def answers(self):
        """Some that stay the same, and one that changes now and then."""
        seconds = self.now_ns // S
        return {
            "doctor": Answer({"machine": {"cpus": 88}}, ("nothing misleads",), 0),
            "memory": Answer({"segments": seconds // 30}, (f"{seconds // 30} segments",), 1),
            "report: memory": Answer(None, ("", "Where memory is", "  where it should be")),
        }

    def stall(self):
        begin_ns = self.now_ns - int(self.rng.integers(1, 100_000_000))
        return Stall(
            begin_ns=begin_ns,
            uncertain_ns=[None, 2_000_000][self.rng.integers(0, 2)],
            end_ns=self.now_ns,
            stolen_ns=0,
            scope=list(SCOPES)[self.rng.integers(0, len(SCOPES))],
            cpus=(0, 3),
            running=(1,),
            chance=0.25,
            hit=(StalledThread(tenant="chat", pid=7, tid=8, step=9, cpu=3, lost_ns=10),),
        )

    def drain(self, n):
        rng, totals = self.rng, self.totals
        totals.add_steps(self.steps(n), self.now_ns)
        pieces = np.zeros(n, PIECE)
        pieces["ns"] = rng.integers(0, 1000, pieces["ns"].shape)
        pieces["events"] = rng.integers(0, 9, pieces["events"].shape)
        totals.add_outside(pieces, rng.integers(0, 3, n).astype(np.int32))
        totals.stalls.add([self.stall() for _ in range(rng.integers(0, 3))], self.now_ns)
        totals.add_queue_waits(rng.integers(0, 3, n).astype(np.int32), rng.integers(1, S, n))
        waits = rng.integers(1, S, n)
        at = rng.integers(0, 3, n), rng.integers(0, len(DESCHEDULES), n)
        np.add.at(self.histograms, (*at, bucket_of(waits)), np.uint64(1))
        np.add.at(self.histograms, (*at, BUCKETS), waits.astype(np.uint64))
        totals.add_deschedules(["other", "chat", "batch"], self.histograms, self.now_ns)
        totals.longest.add(*self._outliers(n))
        self.lost["mark_overrun"] += int(rng.integers(0, 2))

    def steps(self, n):
        rng = self.rng
        ns = rng.integers(0, 5_000_000, (n, len(CAUSES))) * rng.integers(0, 2, (n, len(CAUSES)))
        ns[:, CAUSE_AT["unexplained"]] = rng.integers(-100, 100, n)
        ns[:, 0] += rng.lognormal(16, 1, n).astype(np.int64)
        end = self.now_ns - rng.integers(0, S, n)
        tenant, share = np.full((n, SHARES), -1, np.int32), np.zeros((n, SHARES))
        tenant[:, 0], share[:, 0] = rng.integers(0, 4, n), 0.75
        tenant[:, 1], share[:, 1] = rng.integers(0, 4, n), 0.25
        self.number += n
        kind = rng.integers(0, 3, n)
        return Steps(
            target=rng.integers(1, 5, n).astype(np.uint32),
            tid=rng.integers(100, 200, n).astype(np.uint32),
            slot=rng.integers(0, 4, n).astype(np.uint32),
            number=np.arange(self.number - n, self.number).astype(np.uint64) + 1,
            parent=(kind == 2).astype(np.uint64),
            kind=kind.astype(np.int32),
            tenant=tenant,
            share=share,
            begin_ns=end - ns.sum(axis=1),
            end_ns=end,
            ns=ns,
            switches=rng.integers(0, 9, n).astype(np.uint32),
            involuntary=rng.integers(0, 9, n).astype(np.uint32),
            migrations=rng.integers(0, 9, n).astype(np.uint32),
            events=rng.integers(0, 9, (n, len(EVENTS))) * rng.integers(0, 2, (n, len(EVENTS))),
            helper_wait_ns=rng.integers(0, S, n),
            helper_worst_ns=rng.integers(0, S, n),
            worst=self._worst(n),
            aggressors=self._aggressors(n),
            blame_rest_ns=rng.integers(0, S, n),
        )

    def _worst(self, n):
        worst = np.zeros(n, PIECE["worst"])
        worst["ns"], worst["cause"] = self.rng.integers(0, 3, n), CAUSE_AT["preempted"]
        worst["by"]["comm"] = b"hog"
        return worst

    def _outliers(self, n):
        outliers = np.zeros(n, OUTLIER)
        for field in ("process", "tgid", "tid", "cpu", "step"):
            outliers[field] = self.rng.integers(1, 100, n)
        outliers["wait"]["ns"] = self.rng.integers(1_000_000, S, n)
        outliers["wait"]["at_ns"] = self.now_ns - self.rng.integers(0, S, n)
        outliers["wait"]["cause"] = CAUSE_AT["preempted"]
        outliers["wait"]["by"]["comm"], outliers["wait"]["by"]["tid"] = b"hog", 7
        return outliers, self.rng.integers(0, 4, n).astype(np.int32)

    def _aggressors(self, n):
        aggressors = np.zeros((n, 6), PIECE["aggressors"].base)
        for i in range(3):
            who = self.rng.integers(1, 5, n)
            aggressors["who"]["tgid"][:, i] = aggressors["who"]["tid"][:, i] = who
            aggressors["who"]["comm"][:, i] = [f"hog {each}".encode() for each in who]
            aggressors["ns"][:, i] = self.rng.integers(1, 1000, n) * self.rng.integers(0, 2, n)
        return aggressors
