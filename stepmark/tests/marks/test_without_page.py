"""Where the system gives no page, marks go nowhere and ``status`` says why."""

from __future__ import annotations

import pytest

ALL_KINDS_OF_MARKS = """
for _ in range(3):
    with step('decode', {'chat': 9, 'batch': 1}):
        with stage('sample'): pass
    tick('decode', 'chat')
tock()
queued(now_ns(), 'chat')
"""


@pytest.mark.parametrize(
    ("denied", "reason"),
    [
        ("import os; del os.memfd_create", "no mark page: this system has no memfd_create"),
        (
            "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))",
            "no mark page: Too many open files",
        ),
        (
            "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 24, 1 << 24))",
            "no mark page: Cannot allocate memory",
        ),
    ],
)
def test_marks_go_nowhere_and_the_status_says_why(python, denied, reason):
    engine = python(f"{denied}\n{ALL_KINDS_OF_MARKS}\nprint(stepmark.status())")

    assert engine.said == [f"Status(active=False, reason={reason!r}, lost={{}})"]


def test_with_a_page_the_status_says_so(python):
    engine = python("status = stepmark.status()\nprint(status.active, repr(status.reason))")

    assert engine.said == ["True ''"]
    assert engine.page().slots() == []
