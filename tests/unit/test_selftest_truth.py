"""What of a victim's account is the truth about a cause."""

import pytest

from tracer.selftest.provocations import left_out_of_cpu_time, truth_of

ACCOUNT = {"waited_ns": 900_000_000, "run_delay_ns": 200_000_000, "saw": 400_000_000}


def test_a_wait_is_what_is_left_without_the_run_queue() -> None:
    assert truth_of("lock", ACCOUNT) == (pytest.approx(0.7), left_out_of_cpu_time())


def test_a_late_wakeup_is_the_time_in_the_run_queue() -> None:
    assert truth_of("runqueue", ACCOUNT) == (0.2, ("preempted", "steal", "stall"))


def test_a_limit_is_all_the_time_without_a_cpu() -> None:
    truth, beside = truth_of("rt_limit", ACCOUNT)

    assert truth == 0.9
    assert {"preempted", "runqueue"} <= set(beside)


def test_what_takes_the_cpu_only_is_what_the_thread_saw() -> None:
    truth, beside = truth_of("irq", ACCOUNT)

    assert truth == 0.4
    assert {"preempted", "softirq", "steal"} <= set(beside)
