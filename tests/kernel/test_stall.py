"""
A CPU that cannot be interrupted stands still, as far as its timers can tell: what the victim on it
saw is what the ledger says, and that of the step that was under way.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kernel.harness import Trace, Victim
from tests.kernel.programs import bpf
from tracer.model import Records

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="other tracepoints lie in this machine's interrupts"
)

MS = 1_000_000
HOLD_MS, EVERY_MS = 20, 60
TICK_MS = 10  # at most: for so long before a stall its CPU may have shown no sign of life


def of(trace: Trace, it: Victim) -> Records:
    """The stalls of the CPU that the victim was on, as long as those that are provoked."""
    stalls = trace.kernel.stalls()
    return stalls[(stalls["tid"] == it.pid) & (stalls["lost_ns"] > HOLD_MS * MS / 2)]


@contextmanager
def interrupts_off_now_and_then(cpu: int, folder: Path) -> Iterator[None]:
    limits = {"CPU": cpu, "HOLD_NS": HOLD_MS * MS, "EVERY_NS": EVERY_MS * MS}
    program = bpf("irqs_off", folder, **limits)
    try:
        program.load()
        program.attach(program.programs())
        yield
    finally:
        program.close()


def test_a_stall_is_the_steps_that_was_on_the_cpu(
    trace: Trace, victim: type[Victim], cpu: int, tmp_path: Path
) -> None:
    it = victim("spin", cpu, 2)
    trace.follow(it.pid)
    with interrupts_off_now_and_then(cpu, tmp_path):
        it.go()
        gaps = it.long_gaps()

    mine = of(trace, it)
    assert len(mine) >= 5
    assert set(mine["cpu"]) == {cpu}
    assert set(mine["step"]) == set(trace.work(it.pid)["step"])
    for stall in mine:  # the thread did not run meanwhile, and saw that itself
        assert any(begin < stall["due_ns"] and stall["end_ns"] < end + MS for begin, end in gaps)
        assert HOLD_MS - TICK_MS < stall["lost_ns"] / MS < HOLD_MS + TICK_MS / 2
    lost = mine["lost_ns"].sum() / 1e9
    assert trace.seconds(it.pid)["stall"] == pytest.approx(lost, rel=0.05)
    assert lost == pytest.approx(len(mine) * HOLD_MS / 1e3, rel=0.25)
    assert trace.lost() == {}


def test_other_cpus_are_known_to_have_run(
    trace: Trace, victim: type[Victim], cpu: int, tmp_path: Path
) -> None:
    if cpu == 0:
        pytest.skip("one CPU: there is no other")
    it, other = victim("spin", cpu, 1), victim("spin", 0, 1)
    trace.follow(it.pid)
    with interrupts_off_now_and_then(cpu, tmp_path):
        it.go()
        other.go()
        it.account(), other.account()

    mine = of(trace, it)
    assert len(mine) >= 5
    assert (mine["running"][:, 0] & 1).mean() > 0.8


def test_no_stall_is_told_that_the_thread_did_not_see(
    trace: Trace, victim: type[Victim], cpu: int
) -> None:
    it = victim("spin", cpu, 1)
    trace.follow(it.pid)
    it.go()
    gaps = it.report()

    stalls = trace.kernel.stalls()
    for stall in stalls[(stalls["tid"] == it.pid) & (stalls["step"] > 1)]:  # 1 is the warm-up
        assert any(begin < stall["due_ns"] and stall["end_ns"] < end + MS for begin, end in gaps)
    pulse = trace.kernel.pulses[cpu]
    assert pulse["expiries"] > 20  # ticks: 100 a second at least
    assert pulse["late_ns"] / pulse["expiries"] < 1_000_000
