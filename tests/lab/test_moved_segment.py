"""
A shared segment on the wrong node, until NUMA balancing moves it in the time of a step: charged to
that step, explained as what it is, and the tail is that of memory's place.
"""

import re
from typing import Any

import pytest

from lab.examination import Examination

pytestmark = pytest.mark.lab

PAGES = 16_384


@pytest.fixture(scope="module")
def told(memory: Examination) -> Any:
    """What the program says of the step in which most pages moved, and what a recording does."""
    return memory.json("moved")


def test_the_step_in_which_it_moved_is_charged_with_every_page(told: Any) -> None:
    events = told["step"]["events"]

    assert told["program"]["share"] > 0.9
    assert events["migrate_balancer"] == pytest.approx(told["program"]["share"] * PAGES, rel=0.02)
    assert events["hint_remote"] >= events["migrate_balancer"]


def test_explain_names_first_what_it_paid_for_the_migration(told: Any) -> None:
    said = " ".join(told["explain"].split())

    assert re.search(r"longer than the median: [\d.]+ m?s moving pages to its node", said)
    assert re.search(r"It had .*[\d,]+ balancing page migrations instead of", said)


def test_the_tail_is_that_of_placement(told: Any) -> None:
    assert told["carrier"] == 2
    assert "carried by tier 2, NUMA placement" in " ".join(told["report"].split())
