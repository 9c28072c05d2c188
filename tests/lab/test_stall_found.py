"""
Stalls that are inflicted from outside are found from inside, without a steal clock: how many, how
long, of which CPUs, in which step. The tail that they make is the hypervisor's; one that a quota
makes is not.

An emulator delivers timers late itself, while the CPU runs on. So what a stall is longer than it
was says nothing up to that; and there are more stalls than were inflicted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import kernels, stall, vm
from lab.stall import Interval
from tests.lab.stalled_steps import CPU
from tracer.judge.tiers import Ranking, rank_tails
from tracer.model import Stall
from tracer.record.recording import Recording

pytestmark = pytest.mark.lab

MS = 1_000_000
ALL_MS = (3, 5, 8, 12, 20, 50, 100, 300) * 3
ONE_MS = (5, 20, 100) * 2
PAUSE_S = 0.2
LATE_MS = 5.5
EMULATORS = 1 / 8  # of all: it stops CPUs itself, for milliseconds, in the midst of ours
KNOWN = 0.2  # of a stall's length: a truth that is less certain proves nothing


@dataclass(frozen=True)
class Run:
    all_cpus: Sequence[Interval]
    one_cpu: Sequence[Interval]
    files: Path
    stalls: Sequence[Stall]

    def found(self, truth: Interval) -> Stall | None:
        """The stall that has most in common with it."""
        common = {s: _common(s, truth.start_ns, truth.end_ns) for s in self.stalls}
        best = max(common, key=lambda s: common[s])
        return best if common[best] > 0 else None

    def ranking(self, name: str) -> Ranking:
        with Recording.open(self.files / name) as recording:
            return rank_tails(recording.summary())[0][1]


def _common(seen: Stall, begin_ns: int, end_ns: int) -> int:
    return min(seen.end_ns, end_ns) - max(seen.begin_ns, begin_ns)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    directory = tmp_path_factory.mktemp("stall") / "run"
    command = [sys.executable, "tests/lab/stalled_steps.py"]
    with vm.booted(kernels.fetch("6.12"), "flat-vm", command, directory) as guest:
        guest.wait_for_file("stalls.db.ready", timeout_s=120)
        with stall.ahead_of_other_load(guest):
            all_cpus = [_paused(guest, ms) for ms in ALL_MS]
            one_cpu = [_paused(guest, ms, CPU) for ms in ONE_MS]
            time.sleep(2)
        (guest.files / "enough").touch()
        outcome = guest.wait()
    assert outcome.status == 0, outcome.stderr
    stall.write_truth(outcome.files / "truth.json", [*all_cpus, *one_cpu])
    with Recording.open(outcome.files / "stalls.db") as recording:
        stalls = [seen for window in recording.windows() for seen in window.stalls]
    return Run(_known(all_cpus), _known(one_cpu), outcome.files, stalls)


def _known(truths: Sequence[Interval]) -> list[Interval]:
    return [t for t in truths if t.uncertainty_ns < KNOWN * (t.end_ns - t.start_ns)]


def _paused(guest: vm.Guest, ms: float, cpu: int | None = None) -> Interval:
    time.sleep(PAUSE_S)
    return (
        stall.stall_all(guest, ms / 1e3) if cpu is None else stall.stall_one(guest, cpu, ms / 1e3)
    )


def test_every_stall_is_found_and_as_long_as_it_was(run: Run) -> None:
    wrong = []
    for truth in [*run.all_cpus, *run.one_cpu]:
        length_ns = truth.end_ns - truth.start_ns
        seen = run.found(truth)
        allowed_ns = max(0.05 * length_ns, MS) + truth.uncertainty_ns
        longer_ns = (seen.lost_ns if seen else 0) - length_ns
        if not -allowed_ns < longer_ns < allowed_ns + LATE_MS * MS:
            wrong.append((length_ns / MS, longer_ns / MS))
    assert len(wrong) <= EMULATORS * len([*run.all_cpus, *run.one_cpu]), wrong


def test_the_scope_is_right(run: Run) -> None:
    long = [truth for truth in run.all_cpus if truth.end_ns - truth.start_ns > 2 * LATE_MS * MS]
    of_all = [seen.scope for truth in long if (seen := run.found(truth))]
    of_one = [seen.scope for truth in run.one_cpu if (seen := run.found(truth))]

    # A shorter one seems to begin so early that CPUs were still seen to run.
    assert of_all.count("all") >= (1 - EMULATORS) * len(long)
    # The emulator itself may stop the others at the same time.
    assert of_one.count("one") >= len(of_one) / 2


def test_a_stall_is_the_steps_that_was_under_way(run: Run) -> None:
    with Recording.open(run.files / "stalls.db") as recording:
        slow = {step.number: step for w in recording.windows() for step in w.slowest}
    long = [t for t in run.all_cpus if t.end_ns - t.start_ns > 250 * MS]
    hit = [(truth, seen) for truth in long if (seen := run.found(truth)) and seen.hit]
    assert len(hit) >= len(long) - 1
    for truth, seen in hit:
        (thread,) = seen.hit
        step = slow[thread.step]
        assert step.begin_ns < truth.start_ns + truth.uncertainty_ns
        assert truth.end_ns - truth.uncertainty_ns < step.end_ns
        # One that begins in the midst of an interrupt handler counts as that.
        lost_ns = step.ns["stall"] + step.ns["irq"]
        assert lost_ns == pytest.approx(seen.lost_ns, rel=0.05)


def test_the_tail_is_the_hypervisors(run: Run) -> None:
    ranking = run.ranking("stalls.db")

    assert ranking.carrier
    assert ranking.carrier.number == 0
    assert ranking.excess_ns["stall"] > 0.8 * ranking.longer_ns


def test_a_tail_that_a_quota_makes_is_not(run: Run) -> None:
    ranking = run.ranking("quota.db")

    assert ranking.carrier
    assert ranking.carrier.number == 1


def test_the_doctor_names_it_and_what_helps(run: Run) -> None:
    said = " ".join((run.files / "doctor.txt").read_text().split())

    assert "carried by tier 0, hypervisor" in said
    assert "CPUs stood still: " in said
    assert "works bare metal" in said
    assert "cannot work pin threads" in said
