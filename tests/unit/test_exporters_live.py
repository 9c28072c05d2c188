"""The live state: made when somebody asks, once for all who ask, and bounded."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from exporters.live import Live
from tests.page.node import Names, families


def wait_until_wanted(live):
    while not live.wanted:
        pass


def test_nothing_is_made_while_nobody_asks():
    live = Live("node")

    assert not live.wanted


def test_one_publishing_answers_all_who_ask_and_is_written_once():
    live, described = Live("node", fresh_seconds=3600), []

    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(live.read) for _ in range(4)]
        wait_until_wanted(live)
        live.publish(lambda: described.append(1) or {"steps": 7})
        answers = {each.result() for each in asked}
    answers.add(live.read())

    assert len(answers) == len(described) == 1
    assert json.loads(answers.pop())["steps"] == 7
    assert not live.wanted


def test_words_are_found_by_the_one_who_asks_not_by_the_agent():
    live, threads = Live("node", fresh_seconds=3600), []

    live.publish(lambda: {"x": threads.append(threading.current_thread())})
    with ThreadPoolExecutor() as pool:
        pool.submit(live.read).result()

    assert threads != [threading.current_thread()]


@pytest.mark.parametrize("made_before", [0, 1])
def test_when_the_agent_does_not_come_by_there_is_no_answer(made_before):
    live = Live("node", fresh_seconds=0, patience_seconds=0.01)
    for _ in range(made_before):
        live.publish(lambda: {"steps": 7})

    assert live.read() == b""
    assert live.wanted


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("<&" * 300, "<&" * 200 + "…"),
        ("a\u202eb\x00", r"a\u202eb\x00"),
        ("\ud800" * 300, r"\ud800" * 66 + r"\ud8…"),
    ],
)
def test_texts_are_cut_and_what_does_not_print_is_escaped_wherever_it_is(name, shown):
    live = Live(name, fresh_seconds=3600)
    live.record([])
    live.record(families(Names(victim=name, aggressor=name), publishing=9))
    live.publish(lambda: {"words": [{"of": name}]})

    state = json.loads(live.read())

    texts = [state["node"], state["words"][0]["of"], state["plots"]["blame"][0]["aggressor"]]
    assert texts == [shown] * 3
