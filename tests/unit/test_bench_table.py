"""The bench's rows: which budgets are kept, and how the table reads."""

from __future__ import annotations

import json

from bench.__main__ import document
from bench.machine import Machine
from bench.slowdown import row as slowdown_row
from bench.spread import Spread
from bench.table import Row, Section, as_dict, as_markdown

KEPT = Row("quick", "ns", Spread(90.4, 88.0, 95.0, 5), budget=100)
BROKEN = Row("slow", "x", Spread(4.126, 4.0, 4.2, 5), budget=3.5)
MISSING = Row.unavailable("absent", "ns", "it is not installed")
COMPARED = Row("peer", "ns", Spread(3298.0, 3261.0, 3335.0, 5))


def test_a_budget_is_kept_by_the_median():
    assert KEPT.kept is True
    assert BROKEN.kept is False
    assert Row("at it", "x", Spread.exactly(3.5), budget=3.5).kept is True


def test_what_was_not_measured_neither_keeps_nor_breaks_a_budget():
    assert MISSING.kept is None
    assert Row("absent", "x", None, budget=2).kept is None
    assert COMPARED.kept is None


def test_a_table_shows_each_row_beside_its_budget_and_the_reasons_below():
    lines = list(as_markdown(Section("Hooks", "How.", [KEPT, BROKEN, COMPARED, MISSING])))

    assert [
        "## Hooks",
        "",
        "How.",
        "",
        "| what   | measured    | spread      | n | budget    | kept |",
        "|--------|-------------|-------------|---|-----------|------|",
        "| quick  | 90 ns       | 88-95       | 5 | <= 100 ns | yes  |",
        "| slow   | 4.13 x      | 4.00-4.20   | 5 | <= 3.50 x | NO   |",
        "| peer   | 3,298 ns    | 3,261-3,335 | 5 |           |      |",
        "| absent | unavailable |             |   |           |      |",
        "",
        "- absent: it is not installed",
    ] == lines


def test_json_has_the_same_rows():
    (section,) = json.loads(json.dumps(as_dict([Section("Hooks", "How.", [BROKEN, MISSING])])))
    broken, missing = section["rows"]

    assert (4.126, 3.5, False) == (
        broken["measured"]["median"],
        broken["budget"],
        broken["kept"],
    )
    assert (None, "it is not installed") == (missing["measured"], missing["note"])


def test_a_slowdown_that_may_be_none_is_within_noise():
    noisy = slowdown_row("untracked", [-8.0, 1.0, 9.0, 4.0, -3.0, 5.0], budget=1.0)
    clear = slowdown_row("tracked", [8.0, 9.0, 8.5, 8.2, 9.1, 8.8], budget=3.0)

    assert (True, True) == (noisy.within_noise, noisy.kept)
    assert (False, False) == (clear.within_noise, clear.kept)


def test_the_document_names_the_machine_by_its_properties():
    here = Machine("6.12.0", "Model X", 8, 15.6, is_virtual=True, python="3.13.1")
    text = "\n".join(document(here, "load average 0.1 before it began", []))

    assert "Linux 6.12.0, 8 CPUs (Model X), virtual, 16 GiB of memory, Python 3.13.1" in text
    assert "load average 0.1 before it began" in text
