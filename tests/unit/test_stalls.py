"""Stalls added up by scope, in metrics, findings and words."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.trees import plant, write
from tests.unit.summaries import SUMMARY
from tracer.catalog import SCOPES
from tracer.judge import stalls as words
from tracer.judge.findings import Weight
from tracer.judge.report import report
from tracer.kernel.btf import Btf
from tracer.kernel.hooks import plan
from tracer.ledger import stalls
from tracer.ledger.histogram import EDGES_SECONDS
from tracer.ledger.stalls import StallRow, StallTotals
from tracer.model import Stall, StalledThread

MS, S = 1_000_000, 1_000_000_000


def stall(at_ms, ms, scope="all", **changed):
    fields = {
        "begin_ns": at_ms * MS,
        "uncertain_ns": MS // 2,
        "end_ns": (at_ms + ms) * MS,
        "stolen_ns": 0,
        "scope": scope,
        "cpus": (0, 1, 2, 3),
        "running": (),
        "chance": 1e-12,
        "hit": (),
    }
    return Stall(**(fields | changed))


@pytest.fixture
def totals():
    return StallTotals(60, Counter())


def test_rows_are_by_scope_most_time_first(totals):
    totals.add([stall(0, 10, "one"), stall(100, 300), stall(900, 100)], S)

    assert totals.rows() == (
        StallRow(scope="all", count=2, seconds=0.4, longest=0.3),
        StallRow(scope="one", count=1, seconds=0.01, longest=0.01),
    )
    assert [s.lost_ns // MS for s in totals.longest] == [300, 100, 10]


def test_the_histogram_has_every_scope(totals):
    totals.add([stall(0, 300), stall(900, 100, stolen_ns=60 * MS)], S)

    histograms = totals.histograms(EDGES_SECONDS)

    assert [scope for (scope,) in histograms] == list(SCOPES)
    assert histograms["all",].counts.sum() == 2
    assert histograms["all",].sum == pytest.approx(0.34)
    assert not histograms["one",].counts.any()


def test_each_is_given_once_to_who_asks_for_the_new_ones(totals):
    totals.add([stall(0, 10), stall(100, 20)], S)
    seen = totals.number
    totals.add([stall(2000, 30)], 3 * S)

    assert [s.lost_ns // MS for s in totals.since(0)] == [10, 20, 30]
    assert [s.lost_ns // MS for s in totals.since(seen)] == [30]
    assert totals.since(totals.number) == ()


def test_beyond_what_is_kept_stalls_are_counted(monkeypatch):
    monkeypatch.setattr(stalls, "_RECENT", 3)
    lost: Counter[str] = Counter()
    totals = StallTotals(60, lost)

    totals.add([stall(i * 10, 5) for i in range(5)], S)

    assert len(totals.since(0)) == 3
    assert lost == {"stalls_not_kept": 2}
    assert totals.rows()[0].count == 5


def test_what_is_older_than_the_window_is_not_kept(totals):
    totals.add([stall(0, 10)], S)
    totals.add([stall(70_000, 20)], 71 * S)

    assert [s.lost_ns // MS for s in totals.since(0)] == [20]
    assert totals.rows()[0].count == 2


HIT = StalledThread(tenant="policy-a", pid=7, tid=8, step=979, cpu=3, lost_ns=312 * MS)
STOPPED = replace(
    SUMMARY,
    stalls=(StallRow(scope="all", count=2, seconds=0.6, longest=0.312),),
    longest_stalls=(stall(12_300, 312, hit=(HIT,)),),
)


def test_the_report_tells_when_how_long_which_cpus_and_which_steps():
    lines = report(STOPPED)

    assert "CPUs stood still: 2 x the whole machine, 600 ms, longest 312 ms" in lines
    at = "  00:00:12.300 UTC for 312 ms ±500 us: CPU 0-3; by chance less than 1 in 10^9;"
    assert f"{at} hit policy-a step 979" in lines


def test_a_report_without_stalls_does_not_speak_of_them():
    assert not any("stood still" in line for line in report(SUMMARY))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"uncertain_ns": None}, "for 312 ms or more"),
        ({"running": (4, 5), "scope": "some"}, "CPU 0-3, while 4-5 ran"),
        ({"chance": 0.001}, "by chance 1 in 1,000"),
        ({"chance": 0.9}, "by chance likely"),
        ({"hit": (HIT,) * 5}, "and 2 other threads"),
        ({"hit": (replace(HIT, step=0),)}, "hit policy-a in no step"),
    ],
)
def test_what_is_not_known_is_said(changed, said):
    assert said in words.in_words(stall(0, 312, **changed), 0)


def test_one_cpu_alone_is_no_coincidence():
    assert "chance" not in words.in_words(stall(0, 312, "one", cpus=(2,)), 0)


@pytest.mark.parametrize("scope", SCOPES)
def test_every_scope_is_a_finding_that_costs(scope):
    row = StallRow(scope=scope, count=1, seconds=0.3, longest=0.3)

    (finding,) = words.findings(replace(SUMMARY, stalls=(row,)))

    assert finding.weight is Weight.COSTS
    assert "300 ms" in finding.seen


def test_on_bare_metal_no_hypervisor_is_blamed():
    (finding,) = words.findings(replace(STOPPED, bare_metal=True))

    assert "firmware" in finding.implies
    assert "no hypervisor" in finding.implies


def test_counts_are_of_buckets(totals):
    totals.add([stall(0, ms) for ms in (2, 20, 200)], S)

    counts = totals.histograms(EDGES_SECONDS)["all",].counts

    assert np.count_nonzero(counts) == 3


@pytest.mark.parametrize(
    ("machine", "source"),
    [("flat_vm", "hrtimer"), ("two_sockets", "hrtimer: irqs_off or firmware")],
)
def test_the_source_says_what_keeps_cpus_from_their_timers(tmp_path, machine, source):
    proc, sys = plant(machine, tmp_path)
    write(proc / "devices", "Character devices:\n")
    write(proc / "self/status", Path("/proc/self/status").read_text())

    told = {each.name: each for each in plan(Btf.of_kernel(), proc=proc, sys=sys).capabilities}

    assert told["stall"].source == source
