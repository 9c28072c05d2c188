"""The selftest on this kernel: what it finds, and that it leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.kernel.harness import Trace
from tracer.selftest.groups import controller_root
from tracer.selftest.observer import Observer
from tracer.selftest.provocations import Provocation, provocations, provoke
from tracer.selftest.verdict import Verdict, judge

SELFTEST = [sys.executable, "-m", "tracer.cli", "selftest", "--anyway"]

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 and os.environ.get("KERNEL_TESTS") != "1", reason="needs root"
)


def test_every_cause_that_can_be_provoked_is_named() -> None:
    done = selftest("--json")

    verdicts = {row["cause"]: row["verdict"] for row in json.loads(done.stdout)["causes"]}
    assert "misnamed" not in verdicts.values(), done.stdout
    assert done.returncode == 0, done.stderr
    named = {cause for cause, verdict in verdicts.items() if verdict == "named"}
    assert named >= {"preempted", "runqueue", "quota", "rt_limit", "lock", "net", "sleep"}
    assert named >= {"irq", "softirq"}
    assert verdicts["steal"].startswith("cannot be ")
    assert groups() == []


def test_without_a_budget_per_group_that_of_the_machine_is_used(trace: Trace, cpu: int) -> None:
    (how,) = (each for each in provocations(cpu, False) if each.cause == "rt_limit")

    row = judge(provoke(how, cpu, Observer(trace.kernel)))

    assert row.verdict is Verdict.NAMED, row


def test_a_cause_under_another_name_is_found_out(trace: Trace, cpu: int) -> None:
    """The same sleeps, announced as waits for a peer."""
    how = Provocation("net", ("sleep", 20, 5))

    row = judge(provoke(how, cpu, Observer(trace.kernel)))

    assert row.verdict is Verdict.MISNAMED
    assert "called sleep" in row.reason


def test_another_name_than_a_cause_is_refused() -> None:
    done = selftest("--only", "coffee")

    assert done.returncode == 2
    assert "coffee" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_selftest_leaves_nothing_behind(number: signal.Signals) -> None:
    with subprocess.Popen([*SELFTEST, "--only", "quota"], stderr=subprocess.PIPE) as it:
        victims = victims_of(it.pid)
        it.send_signal(number)
        _, words = it.communicate(timeout=10)

    assert it.returncode == 3
    assert b"interrupted" in words
    assert not any(victim.is_running() for victim in victims)
    assert groups() == []


def test_a_killed_selftest_takes_its_victims_along_and_the_next_removes_its_group() -> None:
    with subprocess.Popen([*SELFTEST, "--only", "quota"], stderr=subprocess.DEVNULL) as it:
        victims = victims_of(it.pid)
        it.kill()
    until(lambda: not any(victim.is_running() for victim in victims))
    left = groups()

    selftest("--only", "sleep")

    assert [path.name for path in left] == [f"tailtrace-selftest-{it.pid}"]
    assert groups() == []


def selftest(*arguments: str) -> subprocess.CompletedProcess[str]:
    """To its end."""
    command = [*SELFTEST, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def groups() -> list[Path]:
    return list(controller_root().glob("tailtrace-selftest-*"))


def victims_of(pid: int) -> list[psutil.Process]:
    """Its victims, once there are any and a group for them."""
    it = psutil.Process(pid)
    until(lambda: bool(groups()) and bool(it.children()))
    return it.children()


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
