"""
A CPU that cannot be interrupted stands still, as far as its timers can tell. How long it was held
is what is told, of those CPUs and no others, in the step that was under way; and of a thread that
waited for that CPU, too.
"""

from __future__ import annotations

import mmap
import os
import platform
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.kernel.harness import Gaps, Trace, Victim, kernel_side, total_seconds
from tests.kernel.programs import bpf
from tracer.kernel.btf import Btf
from tracer.kernel.hooks import plan
from tracer.kernel.trace import KernelTrace
from tracer.ledger.costop import CoStops
from tracer.model import Records, Stall

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="other tracepoints lie in this machine's interrupts"
)

MS = 1_000_000
CPUS = sorted(os.sched_getaffinity(0))
PROBE_HZ = 2000
LENGTHS_MS = (2.5, 4, 7, 12, 25, 60, 150, 400) * 4
PAUSE_MS = 40
HOLD_MS = 20
TICK_MS = 10  # at most: for so long before a stall its CPU may have shown no sign of life
FIRST_STEP = 2  # after the warm-up


class Holds:
    """The times in which CPUs are kept from being interrupted."""

    def __init__(self, wanted: Records, held: Records) -> None:
        self._wanted, self._held = wanted, held

    def inflict(self, lengths_ms: Sequence[float]) -> None:
        """One after the other; returns when they are over."""
        at_ns = time.monotonic_ns()
        for row, ms in zip(self._wanted, lengths_ms, strict=False):
            begin_ns = at_ns + PAUSE_MS * MS
            at_ns = row["until_ns"] = begin_ns + int(ms * MS)
            row["from_ns"] = begin_ns  # last: the kernel side looks at it first
        time.sleep((at_ns - time.monotonic_ns()) / 1e9 + PAUSE_MS / 1e3)

    def of(self, cpu: int) -> Gaps:
        """When the CPU was held."""
        rows = self._held.reshape(-1, len(self._wanted))[cpu].tolist()
        return [(from_ns, until_ns) for from_ns, until_ns in rows if from_ns]


@contextmanager
def interrupts_off(cpus: Sequence[int], folder: Path) -> Iterator[Holds]:
    program = bpf("irqs_off", folder, CPUS=sum(1 << cpu for cpu in cpus))
    try:
        program.load()
        program.attach(program.programs())
        variables, fd = Btf(program.btf).variables(".bss"), program.section_fd(".bss")
        size = max(at + dtype.itemsize for at, dtype in variables.values())
        page = np.frombuffer(mmap.mmap(fd, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE), np.uint8)
        wanted, held = (
            page[at : at + dtype.itemsize].view(dtype.base)
            for at, dtype in (variables["wanted"], variables["held"])
        )
        yield Holds(wanted, held)
    finally:
        program.close()


@pytest.fixture
def probed() -> Iterator[Trace]:
    """A trace for which a timer of its own expires on each CPU, too."""
    here = plan(Btf.of_kernel())
    with (
        kernel_side(),
        KernelTrace(here, tenant_slots=8, outlier_ns=10_000, probe_hz=PROBE_HZ) as kernel,
    ):
        yield Trace(kernel)


def during(stalls: Records, cpu: int, hold: tuple[int, int]) -> Records:
    """The stalls of a CPU that have anything in common with the time."""
    mine = stalls[stalls["cpu"] == cpu]
    return mine[(mine["due_ns"] < hold[1]) & (mine["end_ns"] > hold[0] + MS)]


def is_told(stalls: Records, hold: tuple[int, int]) -> bool:
    """By one stall, as long to 5 % or a millisecond."""
    length_ns = hold[1] - hold[0]
    longer_ns = int(stalls["lost_ns"].sum()) - length_ns
    return len(stalls) == 1 and abs(longer_ns) < max(MS, 0.05 * length_ns)


def covers(gaps: Gaps, hold: tuple[int, int]) -> bool:
    """Whether a victim's gaps have all of a hold, which lasts until its last look at the clock."""
    return any(begin <= hold[0] and hold[1] <= end + MS // 10 for begin, end in gaps)


def common(stall: Stall, hold: tuple[int, int]) -> int:
    return min(stall.end_ns, hold[1]) - max(stall.begin_ns, hold[0])


@pytest.mark.parametrize(
    ("held", "scope"), [(CPUS[-1:], "one"), (CPUS, "all")], ids=["one CPU", "all CPUs"]
)
def test_every_stall_is_told_as_long_as_it_was_and_of_those_cpus_in_that_step(
    probed: Trace, victim: type[Victim], tmp_path: Path, held: list[int], scope: str
) -> None:
    if len(CPUS) == 1:
        pytest.skip("one CPU: there is no other that could run meanwhile")
    victims = {cpu: victim("spin_in_steps", cpu, 6, 20) for cpu in CPUS}
    with interrupts_off(held, tmp_path) as holds:
        for it in victims.values():
            probed.follow(it.pid)
            it.go()
        holds.inflict(random.sample(LENGTHS_MS, len(LENGTHS_MS)))
        steps = {cpu: it.report() for cpu, it in victims.items()}
    stalls = probed.kernel.stalls()
    of_machine = CoStops(len(CPUS), 0).add(stalls, [""] * len(stalls), time.monotonic_ns(), True)

    for cpu in held:
        steps_told = []
        for hold in holds.of(cpu):
            found = during(stalls, cpu, hold)
            assert is_told(found, hold), (hold, found)
            of_all = max(of_machine, key=lambda stall: common(stall, hold))
            assert (of_all.scope, set(of_all.cpus)) == (scope, set(held))
            if found["tid"] == victims[cpu].pid:  # and no other thread was on the CPU
                hit = [FIRST_STEP + n for n, gaps in enumerate(steps[cpu]) if covers(gaps, hold)]
                if hit:  # and it was not between two steps
                    steps_told.append((found["step"].tolist(), hit))
        assert len(holds.of(cpu)) == len(LENGTHS_MS)
        assert len(steps_told) > len(LENGTHS_MS) / 4
        assert [(told, hit) for told, hit in steps_told if told != hit] == []


def test_a_thread_that_waits_for_the_cpu_loses_what_the_one_on_it_loses(
    probed: Trace, victim: type[Victim], cpu: int, tmp_path: Path
) -> None:
    """Neither of the two that share it is to blame for that."""
    it, other = victim("spin", cpu, 2), victim("spin", cpu, 2)
    for each in (it, other):
        probed.follow(each.pid)
    with interrupts_off([cpu], tmp_path) as holds:
        it.go(), other.go()
        holds.inflict([HOLD_MS] * 20)
        accounts = [each.account() for each in (it, other)]

    held = total_seconds(holds.of(cpu))
    assert held > 0.3
    for each, account in zip((it, other), accounts, strict=True):
        seconds, waited = probed.seconds(each.pid), probed.absent(each.pid)
        assert seconds["stall"] == pytest.approx(held, rel=0.05)
        assert 0.1 * held < waited < 0.9 * held
        blamed = seconds["preempted"] + seconds["runqueue"]
        assert blamed + waited == pytest.approx(account["run_delay_ns"] / 1e9, rel=0.02)
        assert sum(probed.blame(each.pid).values()) == pytest.approx(blamed, rel=1e-6)


def test_without_a_timer_of_ours_a_stall_is_known_to_a_tick(
    trace: Trace, victim: type[Victim], cpu: int, tmp_path: Path
) -> None:
    it = victim("spin", cpu, 2)
    trace.follow(it.pid)
    with interrupts_off([cpu], tmp_path) as holds:
        it.go()
        holds.inflict([HOLD_MS] * 20)
        it.account()

    stalls = trace.kernel.stalls()
    for hold in holds.of(cpu):
        (stall,) = during(stalls, cpu, hold)
        assert stall["alive_ns"] - MS < hold[0] < stall["due_ns"] + MS / 10
        assert HOLD_MS - TICK_MS < stall["lost_ns"] / MS < HOLD_MS + TICK_MS / 2
    assert trace.seconds(it.pid)["stall"] == pytest.approx(stalls["lost_ns"].sum() / 1e9, rel=0.05)
    assert trace.lost() == {}


def test_no_stall_is_told_that_the_thread_did_not_see(
    trace: Trace, victim: type[Victim], cpu: int
) -> None:
    it = victim("spin", cpu, 1)
    trace.follow(it.pid)
    it.go()
    gaps = it.report()

    stalls = trace.kernel.stalls()
    for stall in stalls[(stalls["tid"] == it.pid) & (stalls["step"] >= FIRST_STEP)]:
        assert any(begin < stall["due_ns"] and stall["end_ns"] < end + MS for begin, end in gaps)
    pulse = trace.kernel.pulses[cpu]
    assert pulse["expiries"] > 20  # ticks: 100 a second at least
    assert pulse["late_ns"] / pulse["expiries"] < 1_000_000
