"""What is counted, and what is not: nothing twice, nothing of others, nothing lost in silence."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.kernel import programs
from tests.kernel.harness import PRECISION, Program, Trace, Victim
from tracer.ledger.histogram import BUCKETS, edges, quantile


def test_23_sleeps_are_counted_as_23(trace: Trace, victim: type[Victim]) -> None:
    it = victim("sleep", 23, 1)
    index = trace.follow(it.pid)
    before = trace.deschedules(index)
    it.go()
    it.report()

    work = trace.work(it.pid)
    slept = int(work["switches"].sum() - work["involuntary"].sum())
    assert slept == 23
    assert trace.deschedules(index) - before >= 23


def test_a_process_that_is_not_followed_counts_nothing(trace: Trace, victim: type[Victim]) -> None:
    it, other = victim("sleep", 23, 1), victim("sleep", 23, 1)
    index = trace.follow(other.pid)
    trace.kernel.processes[index]["tenant"] = 0
    it.go()
    it.report()

    assert len(trace.pieces(it.pid)) == 0
    assert trace.kernel.tracked_threads() == 1


def test_a_process_that_is_forgotten_counts_no_more(trace: Trace, victim: type[Victim]) -> None:
    it = victim("sleep", 23, 1)
    trace.follow(it.pid)
    trace.kernel.forget(it.pid)
    trace.kernel.tag_threads()
    it.go()
    it.report()

    assert len(trace.work(it.pid)) == 0
    assert trace.kernel.tracked_threads() == 0


def test_a_zombie_is_not_tracked_again(trace: Trace, victim: type[Victim]) -> None:
    it = victim("sleep", 1, 1)
    trace.follow(it.pid)
    it.process.kill()
    os.waitid(os.P_PID, it.pid, os.WEXITED | os.WNOWAIT)
    trace.kernel.tag_threads()

    assert trace.kernel.tracked_threads() == 0


def test_the_idle_task_is_nobody(trace: Trace, victim: type[Victim]) -> None:
    it = victim("sleep", 200, 1)
    trace.follow(it.pid)
    it.go()
    it.report()

    pieces = trace.pieces()
    named = pieces["aggressors"]["ns"] > 0
    assert 0 not in pieces["tid"]
    assert 0 not in pieces["aggressors"]["who"]["tid"][named]


def test_switches_are_those_that_the_kernel_counts(
    trace: Trace, victim: type[Victim], cpu: int
) -> None:
    """
    Voluntary or not is decided as the kernel does (``nivcsw``): a thread that was preempted while
    it was already set to sleep is preempted.
    """
    hogs = [victim("burst_fifo", cpu, 3, 0.2, 0.3) for _ in range(2)]
    it = victim("nap_and_count", cpu, 2)
    trace.follow(it.pid)
    for process in (*hogs, it):
        process.go()

    truth = it.report()

    work = trace.work(it.pid)
    involuntary, switches = int(work["involuntary"].sum()), int(work["switches"].sum())
    assert truth["involuntary"] > 500
    # The step is some milliseconds longer than what the victim looked at, of two seconds.
    assert involuntary == pytest.approx(truth["involuntary"], rel=0.005, abs=5)
    assert switches - involuntary == pytest.approx(truth["voluntary"], rel=0.005, abs=5)


def test_waits_are_those_that_the_scheduler_accounts(
    trace: Trace, victim: type[Victim], cpu: int
) -> None:
    """/proc/PID/schedstat's run_delay, on a CPU that is never idle (see test_causes)."""
    hogs = [victim("spin", cpu, 3), victim("burst_fifo", cpu, 3, 5, 5)]
    it = victim("nap_and_count", cpu, 2)
    trace.follow(it.pid)
    for process in (*hogs, it):
        process.go()

    truth = it.report()

    seconds = trace.seconds(it.pid)
    waited = seconds["preempted"] + seconds["runqueue"] + trace.absent(it.pid)
    assert truth["run_delay"] / 1e9 > 0.5
    # Of each wakeup the kernel leaves out what it takes to switch (rq_clock_skip_update).
    switching = 10e-6 * truth["voluntary"]
    run_delay = truth["run_delay"] / 1e9
    allowed = PRECISION * run_delay
    assert run_delay - allowed <= waited <= run_delay + allowed + switching


def test_the_p999_of_the_histogram_is_that_of_the_waits(
    trace: Trace, victim: type[Victim], cpu: int
) -> None:
    hog, it = victim("burst_fifo", cpu, 4, 0.3, 0.4), victim("spin", cpu, 3)
    index = trace.follow(it.pid)
    hog.go()
    it.go()
    while it.is_working():
        trace.drain()

    exact = np.sort(trace.waits(it.pid)["ns"])
    counts = trace.kernel.histograms[index, 1:, :BUCKETS].sum(axis=0).astype(np.int64)
    told = edges() > exact[0]  # shorter waits have no record of their own
    exact = exact[exact >= edges()[told][0]]
    counts[: np.argmax(told) + 1] = 0
    assert len(exact) > 1000
    assert counts.sum() == len(exact)
    for q in (0.5, 0.99, 0.999):
        true = exact[int(np.ceil(q * len(exact))) - 1]
        assert float(quantile(counts, q)) == pytest.approx(true, rel=0.016)


def test_helpers_count_for_the_step_that_they_hold_up(
    trace: Trace, victim: type[Victim], cpu: int
) -> None:
    hog, it = victim("burst_fifo", cpu, 3, 20, 20), victim("wait_for_helper", cpu, 2)
    trace.follow(it.pid)
    hog.go()
    it.go()

    gaps = [(begin, end) for begin, end in it.report() if end - begin >= 1_000_000]

    truth = sum(end - begin for begin, end in gaps)
    work = trace.work(it.pid)
    assert truth > 500_000_000
    assert int(work["helper_wait_ns"].sum()) == pytest.approx(truth, rel=0.05)
    worst = max(end - begin for begin, end in gaps)
    assert int(work["helper_worst_ns"].max()) == pytest.approx(worst, rel=0.05)


def test_a_new_thread_has_nothing_of_what_helpers_waited_before(
    trace: Trace, victim: type[Victim], cpu: int, tmp_path: Path
) -> None:
    hog = victim("burst_fifo", cpu, 2, 5, 5)
    it = Program(programs.build("late_thread", tmp_path), cpu)
    trace.follow(it.pid)
    hog.go()
    it.go()
    it.output()

    pieces = trace.pieces()
    late = pieces[(pieces["step"] > 0) & (pieces["tid"] != it.pid)]
    assert len(late) == 1
    assert late["helper_wait_ns"].sum() == 0


def test_threads_that_come_and_go_leave_nothing_behind(trace: Trace, tmp_path: Path) -> None:
    it = Program(programs.build("short_threads", tmp_path), 1000, 20)
    trace.follow(it.pid)
    it.go()
    while it.is_running():
        trace.drain()

    started = int(it.output())

    pieces = trace.pieces()
    seen = set(pieces["tid"][pieces["step"] > 0].tolist()) - {it.pid}
    assert started == 20_000
    assert len(seen) == started
    assert trace.lost() == {}
    assert trace.kernel.tracked_threads() == 0
    assert trace.kernel.waiting_threads() == 0
