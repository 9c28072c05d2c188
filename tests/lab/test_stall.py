"""A stall of known length is what a reader of the guest's clock sees, and only where it should."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from lab import kernels, stall, vm

pytestmark = pytest.mark.lab

STALL_S = 0.3
PAUSE_S = 0.5
TIMES = 3
STALLED, OTHER = 1, 2  # virtual CPUs on different nodes
STARVE_S = 1.0
LATE_NS = 100e6
"""Some turns of other threads on a processor of this machine."""


@dataclass(frozen=True)
class Record:
    """What was done, and what each CPU's reader of CLOCK_MONOTONIC saw; ns of the guest."""

    all_cpus: list[stall.Interval]
    one_cpu: list[stall.Interval]
    starved: stall.Interval
    gaps: dict[int, list[tuple[int, int]]]

    def seen(self, cpu: int, truth: stall.Interval) -> int:
        """The longest gap on that CPU during the stall, in ns; 0 if there was none."""
        during = [
            end - start
            for start, end in self.gaps[cpu]
            if start < truth.end_ns and end > truth.start_ns
        ]
        return max(during, default=0)

    def lost(self, truth: stall.Interval) -> int:
        """What both readers together lost during the interval, in ns."""
        overlaps = (
            min(end, truth.end_ns) - max(start, truth.start_ns)
            for gaps in self.gaps.values()
            for start, end in gaps
        )
        return sum(overlap for overlap in overlaps if overlap > 0)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    readers = " & ".join(f"python3 tests/lab/gap_reader.py {cpu}" for cpu in (STALLED, OTHER))
    run = tmp_path_factory.mktemp("stall") / "run"
    command = ["sh", "-c", f"{readers} & wait"]
    with vm.booted(kernels.fetch("6.12"), "two-node", command, run) as guest:
        for cpu in (STALLED, OTHER):
            guest.wait_for_file(f"ready.{cpu}")
        all_cpus = [_after_pause(lambda: stall.stall_all(guest, STALL_S)) for _ in range(TIMES)]
        one_cpu = [
            _after_pause(lambda: stall.stall_one(guest, STALLED, STALL_S)) for _ in range(TIMES)
        ]
        starved = _after_pause(lambda: stall.starve(guest, 1, STARVE_S))
        (guest.files / "enough").touch()
        files = guest.wait().files
    gaps = {cpu: json.loads((files / f"gaps.{cpu}.json").read_text()) for cpu in (STALLED, OTHER)}
    return Record(all_cpus, one_cpu, starved, gaps)


def _after_pause(take_away: Callable[[], stall.Interval]) -> stall.Interval:
    time.sleep(PAUSE_S)
    return take_away()


def assert_seen(record: Record, cpu: int, truth: stall.Interval) -> None:
    """No shorter than it was; longer until this machine's scheduler runs the CPU again."""
    length_ns, seen_ns = truth.end_ns - truth.start_ns, record.seen(cpu, truth)
    unknown_ns = truth.uncertainty_ns + 1e6  # as the reader looks away for that long
    assert length_ns - unknown_ns < seen_ns < length_ns + unknown_ns + LATE_NS, (cpu, truth)


def test_stop_of_all_cpus_is_seen_on_each(record: Record) -> None:
    for truth in record.all_cpus:
        assert_seen(record, STALLED, truth)
        assert_seen(record, OTHER, truth)


def test_stop_of_one_cpu_is_seen_on_that_cpu(record: Record) -> None:
    for truth in record.one_cpu:
        assert truth.cpus == (STALLED,)
        assert_seen(record, STALLED, truth)


def test_stop_of_one_cpu_leaves_the_other_running(record: Record) -> None:
    for truth in record.one_cpu:
        assert record.seen(OTHER, truth) < STALL_S * 1e9 / 2, truth


def test_two_busy_cpus_on_one_processor_lose_one_of_two_seconds(record: Record) -> None:
    length_ns = record.starved.end_ns - record.starved.start_ns
    # Gaps below the reader's threshold are not counted.
    assert record.lost(record.starved) > 0.9 * length_ns


def test_truth_knows_the_guest_clock_to_a_tenth_of_the_stall(record: Record) -> None:
    for truth in record.all_cpus + record.one_cpu:
        assert truth.uncertainty_ns < STALL_S * 1e9 / 10
