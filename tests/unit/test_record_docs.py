"""The pages about recordings and verdicts name everything that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tracer.judge.migration.criteria import Criteria, Criterion
from tracer.judge.migration.figures import FIGURES
from tracer.record.meta import Machine, Meta
from tracer.record.schema import TABLES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def named():
    pages = [(DOCS / page).read_text() for page in ("recordings.md", "verdict.md")]
    return set(re.findall(r"`(\w+)`", "".join(pages)))


@pytest.mark.parametrize("table", TABLES)
def test_tables_and_columns(named, table):
    names = re.findall(r"TABLE (\w+)|(?:^ {4}|\()([a-z]\w*) [A-Z]+", table, re.MULTILINE)

    assert len(names) >= 3
    assert {table or column for table, column in names} <= named


def test_facts_criteria_and_figures(named):
    for struct in (Meta, Machine, Criteria, Criterion):
        assert set(struct.__struct_fields__) <= named
    assert set(FIGURES) <= named
