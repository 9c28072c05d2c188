"""Unit tests without deadlines, the others asked again: a busy machine is no defect."""

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("tailtrace", deadline=None)
settings.load_profile("tailtrace")

_ASKED_ONCE = [Path(__file__).parent / each for each in ("unit", "lab")]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Tests that start other programs hold two clocks against each other, or wait for an answer, on
    machines that others use, too. One that fails is asked again, twice at most; the summary tells
    which. The lab asks its guests again by itself.
    """
    for item in items:
        if not any(item.path.is_relative_to(each) for each in _ASKED_ONCE):
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=3))
