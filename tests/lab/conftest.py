"""One boot per kernel for all that is asked about it, and one matrix of the answers at the end."""

from __future__ import annotations

import sys
import warnings

import pytest

from lab import kernels, matrix
from lab.examination import (
    CHECK,
    SELFTEST,
    SELFTEST_IN_GUEST,
    TRUTH,
    Examination,
    examine,
    examine_here,
)

MACHINE = {"machine": (sys.executable, "tests/lab/machine.py")}

_examined = pytest.StashKey[list[Examination]]()


@pytest.fixture(scope="session", params=kernels.TRACED)
def examined(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Examination:
    """
    Asked once more when an answer is no good, which is said: an emulated CPU that has to wait for
    this machine's other work bends a truth as an error does, but not twice.
    """
    kernel, folder = kernels.fetch(request.param), tmp_path_factory.mktemp(request.param)
    questions = {**MACHINE, **CHECK, **SELFTEST_IN_GUEST, **TRUTH}
    examination = examine(kernel, questions, folder / "run")
    bad = [name for name, answer in examination.answers.items() if answer.status]
    if bad:
        warnings.warn(f"{kernel.release} is asked again: {', '.join(bad)}", stacklevel=1)
        examination = examine(kernel, questions, folder / "again")
    return _kept(request, examination)


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
