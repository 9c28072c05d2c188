"""The matrix of kernels x causes, and the page that is compared with it."""

import json
from typing import Any

from lab import matrix
from lab.examination import Answer, Examination


def examination(kernel: str, quota: str, rows: list[dict[str, Any]]) -> Examination:
    capabilities = [{"name": "quota", "source": quota, "reason": ""}]
    check = {"capabilities": capabilities, "verified_instructions": {"on_switch": 18_019}}
    answers = {"check": check, "selftest": {"causes": rows}}
    return Examination(
        kernel, f"{kernel}.1-amd64", {q: Answer(0, json.dumps(a), "") for q, a in answers.items()}
    )


def row(cause: str, verdict: str, reason: str = "", error: float | None = None) -> dict[str, Any]:
    measured = None if error is None else 0.5 * (1 + error)
    provoked = None if error is None else 0.5
    return {
        "cause": cause,
        "verdict": verdict,
        "reason": reason,
        "provoked": provoked,
        "measured": measured,
        "error": error,
    }


NO_CLOCK = row("steal", "cannot be seen here", "no steal clock")
OLD = examination("6.1", "cfs_rq.throttle_count", [row("quota", "named", "", 0.01), NO_CLOCK])
NEW = examination(
    "6.18", "task.throttled", [row("quota", "misnamed", "250 ms too much", 0.5), NO_CLOCK]
)


def test_matrix_has_a_column_per_kernel_and_each_reason_once() -> None:
    assert list(matrix.as_lines([OLD, NEW])) == [
        "Provoked, measured, error",
        "CAUSE             6.1 (6.1.1)                    6.18 (6.18.1)",
        "quota  500 ms  505 ms   +1.0%  MISNAMED 500 ms  750 ms  +50.0%",
        "steal          cannot be seen                   cannot be seen",
        "steal: no steal clock (6.1, 6.18)",
        "quota: 250 ms too much (6.18)",
        "",
        "Instructions that the verifier processed",
        "PROGRAM       6.1    6.18",
        "all        18,019  18,019",
        "on_switch  18,019  18,019",
    ]


def test_page_tells_what_was_written() -> None:
    page = matrix.page([OLD, NEW])

    for title, (_, column) in matrix.TABLES.items():
        for each in (OLD, NEW):
            assert matrix.told_by_page(page, title, each.kernel) == column(each)


def test_page_knows_no_other_kernel() -> None:
    assert matrix.told_by_page(matrix.page([OLD]), "Told by", "6.18") == {}
