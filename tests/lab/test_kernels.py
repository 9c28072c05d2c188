"""Each kernel, in a guest of two nodes: what it allows, what it tells, and whether that is true."""

import json
import sys
from pathlib import Path

import pytest

from lab import kernels, matrix
from lab.examination import CHECK, Examination, examine

pytestmark = [pytest.mark.lab, pytest.mark.kernels]


PROVOKED = {
    *("preempted", "runqueue", "quota", "rt_limit"),
    *("lock", "io", "fault_io", "net", "sleep"),
    *("irq", "softirq", "fault"),
}
"""What happens in every guest: a cause that is not provoked there any more is no success."""


def machine(release: str) -> dict[str, object]:
    """What tests/lab/machine.py says of a guest of two nodes."""
    return {
        "release": release,
        "cpus": 4,
        "sockets": 2,
        "nodes": 2,
        "bpf_loads": True,
        "mounts": ["bpf", "cgroup2", "proc", "sysfs", "tracefs"],
    }


def on_page(title: str, examined: Examination) -> matrix.Column:
    return matrix.told_by_page(matrix.PAGE.read_text(), title, examined.kernel)


def test_guest_has_two_sockets_on_two_nodes(examined: Examination) -> None:
    assert examined.json("machine") == machine(examined.release)


def test_check_loads_every_program_and_finds_nothing_missing(examined: Examination) -> None:
    assert examined.answers["check"].status == 0, examined.answers["check"]
    assert min(examined.verified.values()) > 0


def test_every_cause_provoked_in_a_guest_is_named(examined: Examination) -> None:
    assert examined.answers["selftest"].status == 0, examined.answers["selftest"]
    assert PROVOKED <= {row["cause"] for row in examined.causes if row["verdict"] == "named"}


def test_every_cause_provoked_on_this_machine_is_named(here: Examination) -> None:
    assert here.answers["selftest"].status == 0, here.answers["selftest"]


def test_truth_tests_pass(examined: Examination) -> None:
    assert examined.answers["truth"].status == 0, examined.answers["truth"]


def test_no_capability_is_lost_or_told_by_other_means(examined: Examination) -> None:
    now = matrix.mechanisms(examined)

    told = {name: by for name, by in on_page("Told by", examined).items() if by != "none"}
    assert told
    assert {name: now.get(name) for name in told} == told


def test_no_program_became_twice_as_long_for_the_verifier(examined: Examination) -> None:
    """Compilers differ by tens of percent; a loop that is unrolled once more does not."""
    told = on_page("Instructions that the verifier processed", examined)

    most = {name: 2 * int(count.replace(",", "")) for name, count in told.items()}
    assert "on_switch" in most
    assert {n: c for n, c in examined.verified.items() if c > most.get(n, c)} == {}


def test_check_says_why_it_cannot_trace_below_the_floor(tmp_path: Path) -> None:
    questions = {**CHECK, "machine": (sys.executable, "tests/lab/machine.py")}
    old = examine(kernels.fetch("5.10"), questions, tmp_path / "run")

    assert json.loads(old.answers["machine"].stdout) == machine(old.release)
    assert old.answers["check"].status == 3
    assert "older than Linux 5.15" in old.answers["check"].stderr
    assert old.answers["check"].stdout == ""
