"""The report: what it says, and that it fits a screen."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.summaries import DECODE, GRPC, MS, SLOW, SUMMARY, by_event
from tracer import catalog
from tracer.judge import words
from tracer.judge.report import as_dict, report, top
from tracer.judge.words import WIDTH
from tracer.ledger.summary import BlameRow


def test_the_table_has_quantiles_their_ratio_and_shares_of_time():
    lines = report(SUMMARY)

    assert lines[0] == "tailtrace: 30.0 s, 4,711 steps, 1 kind, 1 tenant, nothing lost"
    (row,) = (line for line in lines if line.startswith("chat            decode"))
    numbers = "4,711 10.2 ms 21.0 ms 31.2 ms 3.06 92 % 4.0 % 4.0 %"
    assert row.split() == ["chat", "decode", *numbers.split()]


def test_memory_has_a_table_of_what_is_known():
    far = by_event(fault_minor=4711, fault_major=12, alloc_remote=83, alloc_local=17, move_node=5)
    one_node = dict.fromkeys(("allocations", "hint faults", "page moves", "node moves"), "one node")
    two_nodes = "\n".join(report(replace(SUMMARY, rows=(replace(DECODE, events=far),))))
    unknown = "\n".join(report(replace(SUMMARY, cannot_tell=one_node)))

    assert "Memory of steps" in two_nodes
    assert re.search(r"chat +decode +4,711 +12 +83 % +- +0 +5\n", two_nodes)
    assert re.search(r"chat +decode +4,711 +12 +- +- +- +-\n", unknown)
    assert "allocations, hint faults, page moves, node moves: cannot be told here: one" in unknown


def test_the_tail_is_ranked_by_cause():
    lines = report(SUMMARY)

    at = lines.index("   18.3 ms   88 %  preempted")
    assert " ".join(line.strip() for line in lines[at - 2 : at]) == (
        "chat decode, 48 steps: the tail is 20.7 ms longer than the median, carried by tier 1,"
        " limits and preemption: 20.4 ms; work on lower tiers gains at most 400 us"
    )
    assert lines[at : at + 3] == [
        "   18.3 ms   88 %  preempted",
        "   2.10 ms   10 %  in the run queue",
        "    400 us  1.9 %  running",
    ]


def test_aggressors_stand_with_victim_cause_and_time():
    (line,) = (line for line in report(SUMMARY) if line.startswith("rl_sampling"))

    assert line.split() == ["rl_sampling", "chat", "1.90", "s", "preempted"]


def test_what_cannot_be_told_and_what_was_lost_is_said():
    lines = report(
        replace(SUMMARY, cannot_tell={"steal": "no steal clock"}, lost={"piece_late": 3})
    )

    assert lines[0].endswith("LOSSES, see below")
    assert lines[-2:] == ["steal: cannot be told here: no steal clock", "lost: piece_late 3"]


def test_a_p999_of_few_steps_is_marked_as_the_longest():
    lines = report(replace(SUMMARY, rows=(replace(DECODE, count=999),)))

    assert "31.2 ms*" in "\n".join(lines)
    assert "* of fewer than 1,000 steps the P999 is the longest" in lines
    assert "*" not in "\n".join(report(SUMMARY))


def test_top_says_the_same_but_for_the_tail():
    lines = top(SUMMARY)

    assert set(lines) < set(report(SUMMARY))
    assert not any("tail" in line for line in lines[1:])


def test_nothing_yet_is_said_as_such():
    lines = report(replace(SUMMARY, steps=0, rows=(), blame=(), slowest=()))

    assert lines[1].startswith("No step has ended yet.")
    assert len(lines) == 2


long_names = st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), max_size=60)


@settings(deadline=None)
@given(long_names, st.floats(1e-6, 70), st.integers(0, 20))
def test_whatever_the_names_it_fits_the_screen(name, seconds, n):
    row = replace(DECODE, tenant=name, step=name, p999=seconds, count=10**8)
    aggressor = replace(GRPC, name=name, comm=name[:15], seconds=seconds)
    slow = replace(SLOW, tenant=name, step=name, elapsed=seconds, aggressors=(aggressor,) * 6)
    blame = BlameRow(victim=name, aggressor=name, cause="rt_limit", seconds=seconds)
    lines = report(
        replace(
            SUMMARY,
            rows=(row,) * n,
            blame=(blame,) * n,
            slowest=(slow,) * n,
            cannot_tell={"steal": name},
        )
    )

    assert max(map(len, lines)) <= WIDTH
    assert len(lines) <= 84


def test_the_dictionary_is_json_in_seconds():
    again = json.loads(json.dumps(as_dict(SUMMARY)))

    assert again["rows"][0]["p999"] == 31.2 * MS
    assert again["slowest"][0]["aggressors"][0]["comm"] == "grpc-worker-3"


def test_every_cause_has_words():
    assert list(words.CAUSES) == [cause.name for cause in catalog.CAUSES]
    assert list(words.EVENTS) == [event.name for event in catalog.EVENTS]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0"),
        (2e-7, "0"),
        (9.996e-7, "1.00 us"),
        (0.00052, "520 us"),
        (0.0009996, "1.00 ms"),
        (0.0312, "31.2 ms"),
        (0.99996, "1.00 s"),
        (4321, "4,321 s"),
        (604_800, "168.0 h"),
        (-0.002, "-2.00 ms"),
    ],
)
def test_durations_have_three_digits_and_a_unit_that_suits(seconds, expected):
    assert expected == words.duration(seconds)
