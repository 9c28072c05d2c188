"""The selftest's verdict on two accounts of the same seconds, and its table."""

from __future__ import annotations

from typing import Any

import pytest

from tracer.catalog import CAUSES
from tracer.selftest.verdict import Row, Seen, Verdict, as_dict, as_lines, exit_code, judge


def seen(cause: str, truth: float, told: dict[str, float], **other: Any) -> Seen:
    everything = dict.fromkeys([each.name for each in CAUSES], 0.0)
    beside = ("preempted", "runqueue")
    return Seen(cause, truth, beside, everything | told, other.pop("waits", 100), **other)


def test_what_agrees_within_a_percent_is_named() -> None:
    row = judge(seen("sleep", 1.0, {"sleep": 0.991, "other_wait": 3.0}))

    assert row == Row("sleep", Verdict.NAMED, "", 1.0, 0.991)
    assert row.error == pytest.approx(-0.009)


def test_two_milliseconds_are_within_the_bound() -> None:
    assert judge(seen("io", 0.05, {"io": 0.0519}, waits=10)).verdict is Verdict.NAMED
    assert judge(seen("io", 0.05, {"io": 0.0521}, waits=10)).verdict is Verdict.MISNAMED


def test_many_waits_have_many_edges() -> None:
    row = judge(seen("fault_io", 0.05, {"fault_io": 0.06}, waits=1000))

    assert row.verdict is Verdict.NAMED
    assert row.reason == "the edges of 1,000 waits are known to 20.0 ms"


def test_the_load_of_others_is_beside_the_cause_and_does_not_misname_it() -> None:
    row = judge(seen("quota", 1.0, {"quota": 0.7, "preempted": 0.3}))

    assert row.verdict is Verdict.NAMED
    assert row.reason == "beside it 300 ms preempted"
    assert row.provoked == pytest.approx(0.7)


def test_a_wait_under_another_name_is_misnamed() -> None:
    row = judge(seen("net", 1.0, {"net": 0.2, "lock": 0.8}))

    assert row.verdict is Verdict.MISNAMED
    assert row.reason == "800 ms of it are not accounted for, 800 ms called lock"


def test_a_limit_that_is_called_the_load_of_others_is_misnamed() -> None:
    row = judge(seen("rt_limit", 0.5, {"preempted": 0.5}))

    assert row.verdict is Verdict.MISNAMED
    assert row.reason == "most of it called preempted"


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        (0.3, Verdict.NAMED),
        (0.32, Verdict.NAMED),
        (0.0, Verdict.MISNAMED),
        (0.93, Verdict.MISNAMED),
    ],
)
def test_what_has_an_account_of_its_own_is_that_and_at_most_all(
    measured: float, verdict: Verdict
) -> None:
    busy = seen("quota", 0.9, {"quota": measured, "preempted": 0.9 - measured}, least=0.3)

    assert judge(busy).verdict is verdict


@pytest.mark.parametrize(("stall", "verdict"), [(0.1, Verdict.NAMED), (0.0, Verdict.MISNAMED)])
def test_what_came_in_the_midst_of_it_is_not_missing(stall: float, verdict: Verdict) -> None:
    told = {"softirq": 0.3, "stall": stall}

    assert judge(seen("softirq", 0.5, told, least=0.4, nested=("stall",))).verdict is verdict


def test_what_never_happened_by_its_own_account_says_nothing() -> None:
    idle = seen("quota", 0.9, {"preempted": 0.9}, least=0.0)

    assert judge(idle).verdict is Verdict.NOT_PROVOKED


def test_more_than_there_was_is_misnamed() -> None:
    row = judge(seen("rt_limit", 0.5, {"rt_limit": 0.6}))

    assert row.verdict is Verdict.MISNAMED
    assert row.reason == "100 ms too much"


def test_who_is_woken_late_slept_before() -> None:
    late = seen("runqueue", 0.7, {"runqueue": 0.7, "sleep": 0.3})

    assert judge(late).verdict is Verdict.NAMED


@pytest.mark.parametrize(
    ("blamed", "verdict"),
    [(0.495, Verdict.NAMED), (0.0, Verdict.MISNAMED), (0.6, Verdict.MISNAMED)],
)
def test_the_rival_must_be_blamed_for_what_it_ran(blamed: float, verdict: Verdict) -> None:
    preempted = seen("preempted", 0.5, {"preempted": 0.5}, rival=0.5, blamed=blamed)

    assert judge(preempted).verdict is verdict


def test_what_hardly_happened_says_nothing() -> None:
    row = judge(seen("io", 0.001, {"running": 0.3}))

    assert row == Row("io", Verdict.NOT_PROVOKED, "it happened for 1.00 ms only, too short to tell")


def test_a_victim_that_nobody_saw_is_not_misnamed() -> None:
    assert judge(seen("io", 1.0, {})).verdict is Verdict.NOT_SEEN


def test_what_was_lost_meanwhile_is_told() -> None:
    lost = {"switch_unseen": 2, "blame_migrated": 5, "thread_storage": 0}

    row = judge(seen("sleep", 0.508, {"sleep": 0.491, "running": 0.019}, lost=lost))

    assert row.verdict is Verdict.MISNAMED
    assert row.reason == "17.0 ms of it are not accounted for, lost: 2 switch_unseen"


NAMED = Row("sleep", Verdict.NAMED, "", 0.5, 0.505)
NOT_SEEN = Row("gpu", Verdict.NOT_SEEN, "no accelerator's driver is loaded")


def test_the_table_has_a_line_for_each() -> None:
    assert list(as_lines([NAMED, NOT_SEEN])) == [
        "CAUSE         PROVOKED  MEASURED  ERROR %  VERDICT",
        "sleep           500 ms    505 ms    +1.00  named",
        "gpu                  -         -        -  "
        "cannot be seen here: no accelerator's driver is loaded",
    ]


def test_json_has_seconds_and_a_share() -> None:
    first, second = as_dict([NAMED, NOT_SEEN])["causes"]

    assert first == {
        "cause": "sleep",
        "verdict": "named",
        "reason": "",
        "provoked": 0.5,
        "measured": 0.505,
        "error": pytest.approx(0.01),
    }
    assert second["error"] is None


def test_the_exit_code_is_that_of_the_worst() -> None:
    misnamed = Row("net", Verdict.MISNAMED, "", 1.0, 0.0)

    assert exit_code([NAMED, NOT_SEEN]) == 0
    assert exit_code([NAMED, misnamed]) == 1
    assert exit_code([NOT_SEEN]) == 3
