"""
Each cause, provoked for real: it is named, its seconds are the victim's own, and no other cause
takes any of them.
"""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.kernel.harness import PRECISION, Trace, Victim, overlap, total_seconds
from tracer.selftest.groups import cpu_group
from tracer.selftest.observer import CAUSES

WAITS = CAUSES[CAUSES.index("preempted") : CAUSES.index("unexplained")]


def assert_lands_in(seconds: dict[str, float], cause: str, truth: float) -> None:
    """
    Within 1 % or 2 ms of the truth, and no other wait has more than 1 % or 2 ms of it.

    The truth is wall time less CPU time and wait for a CPU, so it has steal in it.
    """
    least = max(PRECISION * truth, 0.002)

    assert seconds[cause] - least <= truth <= seconds[cause] + seconds["steal"] + least
    others = {w: seconds[w] for w in WAITS if w not in (cause, "runqueue", "preempted")}
    assert {w: s for w, s in others.items() if s > least} == {}


def slack(truth: float, trace: Trace, it: Victim) -> float:
    """Of what a spinning victim missed. Its clocks do not tell a wait from a stop of the CPU."""
    seconds = trace.seconds(it.pid)
    return PRECISION * truth + seconds["steal"] + seconds["stall"]


@pytest.mark.parametrize(
    ("what", "arguments", "cause"),
    [
        ("sleep", (100, 5), "sleep"),
        ("futex", (100, 5), "lock"),
        ("flock", (500,), "lock"),
        ("pipe", (100, 5), "net"),
        ("epoll", (100, 5), "net"),
        ("device", (100, 5), "gpu"),
        ("disk", (64,), "io"),
        ("fault", (64,), "fault_io"),
    ],
)
def test_a_wait_has_one_cause(
    trace: Trace, victim: type[Victim], what: str, arguments: tuple[int, ...], cause: str
) -> None:
    it = victim(what, *arguments)
    trace.follow(it.pid)
    it.go()

    account = it.account()

    truth = (account["waited_ns"] - account["run_delay_ns"]) / 1e9
    assert_lands_in(trace.seconds(it.pid), cause, truth)
    assert trace.lost() == {}


def test_a_preempted_thread_waited_as_long_as_it_saw_itself(
    trace: Trace, victim: type[Victim], cpu: int
) -> None:
    hog = victim("burst_fifo", cpu, 3, 20, 20)
    it = victim("spin_against", cpu, 2, hog.pid)
    trace.follow(it.pid)
    hog.go()
    it.go()

    account = it.account()

    truth, ran = account["waited_ns"] / 1e9, account["saw"] / 1e9
    assert ran > 0.5
    assert trace.seconds(it.pid)["preempted"] == pytest.approx(truth, abs=slack(truth, trace, it))
    assert trace.blame(it.pid)[hog.pid] == pytest.approx(ran, abs=2 * slack(truth, trace, it))


def test_blame_adds_up_to_the_wait(trace: Trace, victim: type[Victim], cpu: int) -> None:
    hogs = [victim("spin", cpu, 3) for _ in range(3)]
    it = victim("spin", cpu, 2)
    trace.follow(it.pid)
    for process in (*hogs, it):
        process.go()
    it.report()

    blame, seconds = trace.blame(it.pid), trace.seconds(it.pid)
    waited = seconds["preempted"] + seconds["runqueue"]
    assert waited > 1
    assert sum(blame.values()) == pytest.approx(waited, rel=1e-6)
    assert min(blame[hog.pid] for hog in hogs) > 0.1 * waited


def test_every_long_wait_carries_the_step_it_fell_into(
    trace: Trace, victim: type[Victim], cpu: int
) -> None:
    hog, it = victim("spin", cpu, 4), victim("spin_in_steps", cpu, 2, 7)
    trace.follow(it.pid)
    hog.go()
    it.go()

    steps = it.report()

    waits = trace.kernel.outliers()
    waits = waits[(waits["tid"] == it.pid) & (waits["step"] > 0)]
    first = 2  # step 1 was the warm-up
    true_gaps = [
        (first + i, begin, end)
        for i, gaps in enumerate(steps)
        for begin, end in gaps
        if end - begin > 1_100_000
    ]
    told = {int(w["wait"]["at_ns"]): int(w["step"]) for w in waits}
    found = {
        (number, at): step
        for number, begin, end in true_gaps
        for at, step in told.items()
        if begin < at <= end
    }
    assert len(true_gaps) > 50
    assert len({number for number, _ in found}) >= (1 - PRECISION) * len(
        {n for n, _, _ in true_gaps}
    )
    assert {n for (n, _), step in found.items() if step != n} == set()


def test_a_real_time_hog_makes_the_woken_wait_in_the_run_queue(
    trace: Trace, victim: type[Victim], cpu: int
) -> None:
    hog, it = victim("burst_fifo", cpu, 3, 10, 10), victim("wake_late", cpu, 2)
    trace.follow(it.pid)
    hog.go()
    it.go()

    truth = it.account()["run_delay_ns"] / 1e9

    seconds = trace.seconds(it.pid)
    assert truth > 0.5
    waited = seconds["runqueue"] + seconds["preempted"] + trace.absent(it.pid)
    assert waited == pytest.approx(truth, rel=2 * PRECISION)
    assert seconds["runqueue"] > 0.9 * truth
    blame = trace.blame(it.pid)
    assert max(blame, key=lambda who: blame[who]) == hog.pid


def test_a_group_out_of_quota_is_throttled_not_preempted(
    trace: Trace, victim: type[Victim], cpu: int
) -> None:
    it = victim("spin", cpu, 2)
    trace.follow(it.pid)
    with cpu_group(quota=0.3) as group:
        group.add(it.pid)
        it.go()
        truth = it.seconds_without_cpu()

    seconds = trace.seconds(it.pid)
    assert truth > 1
    assert sum(seconds[w] for w in WAITS) == pytest.approx(truth, abs=slack(truth, trace, it))
    assert seconds["quota"] > truth - seconds["preempted"] - slack(truth, trace, it)


def test_quota_keeps_a_thread_waiting_once_a_throttled_period(
    trace: Trace, victim: type[Victim], cpu: int
) -> None:
    """A turn that goes to a rival is none of the quota's, even while the quota is used up."""
    rival, it = victim("spin", cpu, 4), victim("spin", cpu, 3)
    trace.follow(it.pid)
    with cpu_group(quota=0.3) as group:
        group.add(it.pid)
        rival.go()
        it.go()
        it.report()
        throttled = group.stat()["nr_throttled"]

    waits = trace.waits(it.pid)
    assert throttled > 20
    assert int((waits["cause"] == CAUSES.index("quota")).sum()) == pytest.approx(throttled, abs=2)


def test_a_quota_that_runs_out_behind_a_sibling_is_told_from_the_siblings_turn(
    trace: Trace, victim: type[Victim], cpu: int
) -> None:
    """The kernel's account of the quota is the truth of one, the sibling's gaps of the other."""
    it, sibling = victim("spin", cpu, 3), victim("spin", cpu, 3)
    for each in (it, sibling):
        trace.follow(each.pid)
    with cpu_group(quota=0.2) as group:
        for each in (it, sibling):
            group.add(each.pid)
        it.go()
        sibling.go()
        gaps = it.long_gaps(free=group.lift)
        siblings_turns = total_seconds(gaps) - total_seconds(overlap(gaps, sibling.long_gaps()))
        throttled = group.throttled_seconds()

    blame, quota = trace.blame(it.pid), trace.seconds(it.pid)["quota"]
    tolerance = slack(total_seconds(gaps), trace, it)
    assert throttled > 0.8
    assert siblings_turns > 0.1
    assert quota == pytest.approx(throttled, abs=tolerance)
    assert siblings_turns - blame[0] - tolerance <= blame[sibling.pid]
    assert blame[sibling.pid] <= siblings_turns + tolerance


def test_a_thread_that_is_stopped_waits_for_no_page(
    trace: Trace, victim: type[Victim], cpu: int
) -> None:
    it = victim("spin", cpu, 1)
    trace.follow(it.pid)
    it.go()
    time.sleep(0.3)
    os.kill(it.pid, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(it.pid, signal.SIGCONT)
    it.report()

    seconds = trace.seconds(it.pid)
    assert seconds["other_wait"] == pytest.approx(0.5, rel=0.1)
    assert seconds["fault_io"] < 0.01


def test_a_real_time_thread_out_of_budget_is_limited_not_preempted(
    trace: Trace, victim: type[Victim], cpu: int
) -> None:
    it = victim("spin_fifo", cpu, 3)
    trace.follow(it.pid)
    with cpu_group(rt_budget=0.5) as group:
        group.add(it.pid)
        it.go()
        truth = it.seconds_without_cpu()

    assert truth > 0.8
    assert trace.seconds(it.pid)["rt_limit"] == pytest.approx(truth, abs=slack(truth, trace, it))


def test_the_real_time_limit_of_the_whole_machine_is_named(
    trace: Trace, victim: type[Victim], cpu: int
) -> None:
    rival, it = victim("spin", cpu, 5), victim("spin_fifo", cpu, 3)
    trace.follow(it.pid)
    rival.go()
    it.go()

    truth = it.seconds_without_cpu()

    assert truth > 0.05
    assert trace.seconds(it.pid)["rt_limit"] == pytest.approx(truth, abs=slack(truth, trace, it))
