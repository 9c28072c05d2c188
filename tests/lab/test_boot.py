"""Each kernel boots in the shape that was asked for, with what BPF needs."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab import kernels, vm
from lab.errors import GuestError

pytestmark = pytest.mark.lab


MACHINE = f"{sys.executable} tests/lab/machine.py"
PROGRAMS = f"{sys.executable} tests/lab/load_programs.py"


@dataclass(frozen=True)
class Booted:
    kernel: kernels.Kernel
    outcome: vm.Outcome

    def report(self, name: str) -> Any:
        return json.loads((self.outcome.files / name).read_text())


@pytest.fixture(scope="module", params=kernels.SUITES)
def two_node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Booted:
    """One boot per kernel, for all that is asked about it here."""
    kernel = kernels.fetch(request.param)
    script = f"{MACHINE} >$LAB_OUT/machine; {PROGRAMS} >$LAB_OUT/programs"
    run = tmp_path_factory.mktemp("two-node") / "run"
    with vm.booted(kernel, "two-node", ["sh", "-c", script], run) as guest:
        return Booted(kernel, guest.wait())


def test_two_node_guest_has_two_sockets_on_two_nodes(two_node: Booted) -> None:
    assert two_node.report("machine") == {
        "release": two_node.kernel.release,
        "cpus": 4,
        "sockets": 2,
        "nodes": 2,
        "bpf_loads": True,
        "mounts": ["bpf", "cgroup2", "proc", "sysfs", "tracefs"],
    }


def test_every_program_chosen_for_the_kernel_passes_its_verifier(two_node: Booted) -> None:
    if two_node.kernel.name == "5.10":
        assert two_node.outcome.status != 0, "below the floor of 5.15, yet everything loads"
        return
    assert two_node.outcome.status == 0, two_node.outcome.stderr
    programs = two_node.report("programs")
    assert sorted(programs["verified"]) == programs["chosen"]
    assert min(programs["verified"].values()) > 0


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> vm.Outcome:
    """A flat guest's report on stdout, and a trace of each other kind to be brought back."""
    script = f"{MACHINE}; echo err >&2; echo file >$LAB_OUT/note; exit 7"
    run = tmp_path_factory.mktemp("flat") / "run"
    with vm.booted(kernels.fetch("6.12"), "flat-vm", ["sh", "-c", script], run) as guest:
        return guest.wait()


def test_flat_guest_has_eight_sockets_on_one_node(flat: vm.Outcome) -> None:
    inside = json.loads(flat.stdout)

    assert (inside["cpus"], inside["sockets"], inside["nodes"]) == (8, 8, 1)


def test_status_output_and_files_come_back(flat: vm.Outcome) -> None:
    assert (flat.status, flat.stderr) == (7, "err\n")
    assert (flat.files / "note").read_text() == "file\n"


def test_panic_is_a_failure_with_its_console_log(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo c >/proc/sysrq-trigger"]

    with (
        pytest.raises(GuestError, match="the guest ended and the command did not end") as failure,
        vm.booted(kernels.fetch("6.1"), "two-node", command, tmp_path / "run") as guest,
    ):
        guest.wait(timeout_s=60)

    assert "sysrq triggered crash" in "".join(failure.value.__notes__)


def test_no_kernel_is_a_failure_with_its_console_log(tmp_path: Path) -> None:
    image = tmp_path / "vmlinuz"
    image.write_text("not a kernel\n")

    with (
        pytest.raises(GuestError, match="the guest ended and") as failure,
        vm.booted(kernels.Kernel("none", "none", image), "two-node", ["true"], tmp_path / "run"),
    ):
        pass

    assert "console log ends:\n" in failure.value.__notes__[0]
