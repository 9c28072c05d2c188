"""Who touched a shared segment first, in a guest of two real nodes: as the program did it."""

from typing import Any

import pytest

from lab.examination import Examination

pytestmark = pytest.mark.lab

LOADED, REST = 3000, 1000


@pytest.fixture(scope="module")
def told(memory: Examination) -> Any:
    """What a recording has of the program's memory, as data and in words."""
    return memory.json("touched")


def test_every_page_is_told_of_the_thread_that_touched_it_and_its_node(told: Any) -> None:
    (segment,) = told["memory"]["segments"]

    first = segment["first_touch"]
    assert (first["source"], first["pages"]) == ("fentry", LOADED + REST)
    assert [(each["name"], each["node"], each["pages"]) for each in first["by"]] == [
        ("loader", 0, LOADED),
        ("touch_victim", 1, REST),
    ]
    assert segment["pages"]["by_node"] == {"0": LOADED, "1": REST}


def test_the_misplaced_segment_is_told_with_who_touched_it_and_who_should(told: Any) -> None:
    (finding,) = (f for f in told["memory"]["findings"] if f["name"] == "misplaced_segment")

    assert "touched first by loader (pid " in finding["seen"]
    assert finding["seen"].endswith(") on node 1: 25 % of 4,000 pages seen")
    assert finding["action"].startswith("have a thread on node 1 touch it first")
    said = " ".join(told["report"].split())
    assert ") on node 0: 75 %, touch_victim (pid " in said
