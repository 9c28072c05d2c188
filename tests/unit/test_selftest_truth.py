"""What of a victim's account is the truth about a cause."""

import pytest

from tracer.selftest.provocations import left_out_of_cpu_time, truth_of


def test_a_wait_is_what_is_left_without_the_run_queue() -> None:
    assert truth_of("lock", 0.9, 0.2) == (pytest.approx(0.7), left_out_of_cpu_time())


def test_a_late_wakeup_is_the_time_in_the_run_queue() -> None:
    assert truth_of("runqueue", 0.9, 0.2) == (0.2, ("preempted",))


def test_a_limit_is_all_the_time_without_a_cpu() -> None:
    truth, beside = truth_of("rt_limit", 0.9, 0.2)

    assert truth == 0.9
    assert {"preempted", "runqueue"} <= set(beside)
