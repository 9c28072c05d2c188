"""
What a kernel is asked in one boot: what it allows, whether causes are named, the truth tests.
"""

from __future__ import annotations

import json
import platform
import shlex
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import vm
from lab.emulator import CHECKOUT
from lab.errors import GuestError
from lab.kernels import Kernel
from tracer.errors import UnavailableError

Questions = Mapping[str, Sequence[str]]
"""Commands by short names."""

_TAILTRACE = (sys.executable, "-m", "tracer.cli")

CHECK: Questions = {"check": (*_TAILTRACE, "check", "--json")}
_SELFTEST = (*_TAILTRACE, "selftest", "--json", "--anyway")
SELFTEST: Questions = {"selftest": _SELFTEST}
SELFTEST_IN_GUEST: Questions = {"selftest": (*_SELFTEST, f"--within={100 * vm.TRUTH_PRECISION:g}")}

NOT_IN_GUESTS = {
    "tests/kernel/test_causes.py::test_a_real_time_thread_out_of_budget_is_limited_not_preempted": (
        "Debian builds no real-time budget per group (CONFIG_RT_GROUP_SCHED)"
    ),
}
"""Truth tests that cannot run there, and why."""

TRUTH: Questions = {
    "truth": (
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        "tests/kernel/test_causes.py",
        *(f"--deselect={test}" for test in NOT_IN_GUESTS),
    )
}


@dataclass(frozen=True)
class Answer:
    """What a command left."""

    status: int
    stdout: str
    stderr: str

    def __str__(self) -> str:
        return f"exit code {self.status}\n{self.stdout}{self.stderr}"


@dataclass(frozen=True)
class Examination:
    """The answers of a kernel."""

    kernel: str
    """Its short name."""

    release: str
    """What ``uname -r`` says."""

    answers: Mapping[str, Answer]

    def json(self, question: str) -> Any:
        """Raises UnavailableError when there is no answer but an error."""
        answer = self.answers[question]
        if not answer.stdout:
            raise UnavailableError(f"{self.release}: {question}: {answer.stderr.strip()}")
        return json.loads(answer.stdout)

    @property
    def capabilities(self) -> list[dict[str, Any]]:
        """Of ``tailtrace check``: name, source, reason."""
        return list(self.json("check")["capabilities"])

    @property
    def verified(self) -> dict[str, int]:
        """Program -> instructions that the verifier processed."""
        return dict(self.json("check")["verified_instructions"])

    @property
    def causes(self) -> list[dict[str, Any]]:
        """Of ``tailtrace selftest``: cause, verdict, reason; provoked, measured (s), error."""
        return list(self.json("selftest")["causes"])


def examine(
    kernel: Kernel, questions: Questions, run: Path, boots: int = 1, timeout_s: float = 600
) -> Examination:
    """
    Ask a kernel in a guest of two nodes, one question after another.

    ``run`` is a new directory with one for each boot (:func:`lab.vm.booted`). What got no answer,
    or a bad one, is asked again in a new guest, with a warning: a guest that ends early, or that
    had to wait for this machine's other work, bends a truth as an error does, but not every time.

    Raises GuestError when a question has no answer after the last boot.
    """
    answers: dict[str, Answer] = {}
    for boot in range(1, boots + 1):
        left = {n: q for n, q in questions.items() if n not in answers or answers[n].status}
        if not left:
            break
        if boot > 1:
            warnings.warn(f"{kernel.release} is asked again: {', '.join(left)}", stacklevel=2)
        try:
            _ask(kernel, left, run / f"{boot}", timeout_s)
        except GuestError as error:
            if boot == boots:
                raise
            warnings.warn(str(error), stacklevel=2)
        answers |= _answers(left, run / f"{boot}" / "out")
    return Examination(kernel.name, kernel.release, {name: answers[name] for name in questions})


def _ask(kernel: Kernel, questions: Questions, run: Path, timeout_s: float) -> None:
    script = "\n".join(
        f"{shlex.join(command)} >$LAB_OUT/{name}.stdout 2>$LAB_OUT/{name}.stderr;"
        f" echo $? >$LAB_OUT/{name}.status"
        for name, command in questions.items()
    )
    with vm.booted(kernel, "two-node", ["sh", "-c", script], run) as guest:
        guest.wait(timeout_s)


def _answers(questions: Questions, files: Path) -> dict[str, Answer]:
    """Those that are complete."""
    return {
        name: Answer(
            int((files / f"{name}.status").read_text()),
            (files / f"{name}.stdout").read_text(),
            (files / f"{name}.stderr").read_text(),
        )
        for name in questions
        if (files / f"{name}.status").exists()
    }


def examine_here(questions: Questions) -> Examination:
    """Ask the kernel of this machine, without a guest."""
    answers = {}
    for name, command in questions.items():
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
        answers[name] = Answer(done.returncode, done.stdout, done.stderr)
    return Examination("host", platform.release(), answers)
