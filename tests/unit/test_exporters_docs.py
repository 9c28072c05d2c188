"""The reference of metrics is current."""

from __future__ import annotations

from pathlib import Path

from exporters.docs import reference

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_reference_is_what_the_catalog_says():
    assert PAGE.read_text() == reference(), "run: python -m exporters.docs > docs/metrics.md"
