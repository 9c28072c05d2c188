"""One boot per kernel for all that is asked about it, and one matrix of the answers at the end."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lab import kernels, matrix
from lab.emulator import CHECKOUT
from lab.examination import (
    CHECK,
    SELFTEST,
    SELFTEST_IN_GUEST,
    TRUTH,
    Examination,
    examine,
    examine_here,
)

VICTIMS = "segment_victim", "memory_victim", "touch_victim"
MEMORY = {
    "moved": (sys.executable, "-m", "tests.lab.moved_segment", "build/segment_victim"),
    "touched": (sys.executable, "-m", "tests.lab.first_touch", "build/touch_victim"),
    "placement": (sys.executable, "-m", "tests.lab.placement"),
    "events": (sys.executable, "tests/lab/trace_memory.py", "build/memory_victim"),
}
MACHINE = {"machine": (sys.executable, "tests/lab/machine.py")}

_BOOTS = 3
_examined = pytest.StashKey[list[Examination]]()


@pytest.fixture(scope="session", params=kernels.TRACED)
def examined(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Examination:
    kernel, folder = kernels.fetch(request.param), tmp_path_factory.mktemp(request.param)
    questions = {**MACHINE, **CHECK, **SELFTEST_IN_GUEST, **TRUTH}
    return _kept(request, examine(kernel, questions, folder, _BOOTS))


@pytest.fixture(scope="session", params=kernels.TRACED)
def memory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Examination:
    """All that is asked of memory, answered."""
    for victim in VICTIMS:
        _compile(victim)
    kernel, folder = kernels.fetch(request.param), tmp_path_factory.mktemp(request.param)
    examination = examine(kernel, MEMORY, folder, _BOOTS)
    assert [str(a) for a in examination.answers.values() if a.status] == []
    return examination


def _compile(victim: str) -> None:
    """In the checkout, which the guest sees."""
    (CHECKOUT / "build").mkdir(exist_ok=True)
    source, program = f"tests/lab/{victim}.c", f"build/{victim}"
    options = ("-O2", "-pthread", "-Istepmark/stepmark/include")
    subprocess.run(("gcc", *options, source, "-o", program), cwd=CHECKOUT, check=True)


@pytest.fixture(scope="session")
def here(request: pytest.FixtureRequest) -> Examination:
    return _kept(request, examine_here({**CHECK, **SELFTEST}))


def _kept(request: pytest.FixtureRequest, answers: Examination) -> Examination:
    request.config.stash.setdefault(_examined, []).append(answers)
    return answers


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    answered = sorted(config.stash.get(_examined, []), key=lambda each: each.kernel != "host")
    if not answered:
        return
    terminalreporter.section("kernels")
    terminalreporter.write_line("\n".join(matrix.as_lines(answered)))
