"""
What a kernel is asked in one boot: what it allows, whether causes are named, the truth tests.
"""

from __future__ import annotations

import json
import platform
import shlex
import subprocess
import sys
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
        """Of ``tailtrace check``: name, source, reason, required."""
        return list(self.json("check")["capabilities"])

    @property
    def verified(self) -> dict[str, int]:
        """Program -> instructions that the verifier processed."""
        return dict(self.json("check")["verified_instructions"])

    @property
    def causes(self) -> list[dict[str, Any]]:
        """Of ``tailtrace selftest``: cause, verdict, reason; provoked, measured (s), error."""
        return list(self.json("selftest")["causes"])


def examine(kernel: Kernel, questions: Questions, run: Path, timeout_s: float = 900) -> Examination:
    """
    Ask a kernel in a guest of two nodes, one question after another.

    ``run`` is as for :func:`lab.vm.booted`. Raises GuestError when the guest does not come up, or
    ends before the last answer.
    """
    script = "\n".join(
        f"{shlex.join(command)} >$LAB_OUT/{name}.stdout 2>$LAB_OUT/{name}.stderr;"
        f" echo $? >$LAB_OUT/{name}.status"
        for name, command in questions.items()
    )
    with vm.booted(kernel, "two-node", ["sh", "-c", script], run) as guest:
        files = guest.wait(timeout_s).files
    if missing := [name for name in questions if not (files / f"{name}.status").exists()]:
        raise GuestError(f"{guest.what}: never ran {', '.join(missing)}", run / "console.log")
    answers = {
        name: Answer(
            int((files / f"{name}.status").read_text()),
            (files / f"{name}.stdout").read_text(),
            (files / f"{name}.stderr").read_text(),
        )
        for name in questions
    }
    return Examination(kernel.name, kernel.release, answers)


def examine_here(questions: Questions) -> Examination:
    """Ask the kernel of this machine, without a guest."""
    answers = {}
    for name, command in questions.items():
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
        answers[name] = Answer(done.returncode, done.stdout, done.stderr)
    return Examination("host", platform.release(), answers)
