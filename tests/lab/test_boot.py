"""A guest has the shape that was asked for; what it leaves comes back; what fails is told."""

import json
import sys
from pathlib import Path

import pytest

from lab import emulator, kernels, vm
from lab.emulator import Shape
from lab.errors import GuestError

pytestmark = pytest.mark.lab


MACHINE = f"{sys.executable} tests/lab/machine.py"


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


def test_panic_before_the_command_is_a_second_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    appended = iter(["rdinit=/none root=/dev/none", "quiet"])

    def command_line(kernel: kernels.Kernel, shape: Shape, run: Path) -> list[str]:
        whole = emulator.command_line(kernel, shape, run)
        return [*whole, "--append", next(appended)]

    monkeypatch.setattr(vm, "command_line", command_line)

    with (
        pytest.warns(UserWarning, match="booted again: .* the guest ended and it did not come up"),
        vm.booted(kernels.fetch("6.1"), "two-node", ["true"], tmp_path / "run") as guest,
    ):
        outcome = guest.wait()

    (log,) = (tmp_path / "run").glob("panic.*.log")
    assert outcome.status == 0
    assert "Kernel panic" in log.read_text()


def test_no_kernel_is_a_failure_with_its_console_log(tmp_path: Path) -> None:
    image = tmp_path / "vmlinuz"
    image.write_text("not a kernel\n")

    with (
        pytest.raises(GuestError, match="the guest ended and") as failure,
        vm.booted(kernels.Kernel("none", "none", image), "two-node", ["true"], tmp_path / "run"),
    ):
        pass

    assert "console log ends:\n" in failure.value.__notes__[0]
