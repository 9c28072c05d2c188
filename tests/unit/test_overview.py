"""What the page is told besides its plots: in a useful order, and bounded."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.page.node import Names, summary
from tracer.judge import doctor
from tracer.judge.overview import overview
from tracer.model import Capability

SUMMARY = summary(Names())
SLOW = SUMMARY.slowest[0]
DIAGNOSIS = doctor.examine()
S = 10**9


def of(**changes):
    capabilities = [Capability("gpu", "none", "no driver")]
    return overview(replace(SUMMARY, **changes), capabilities, None, DIAGNOSIS, 70 * S)


def test_a_slow_step_is_told_in_words_and_how_long_ago_it_was():
    (step,) = of(slowest=(replace(SLOW, end_ns=68 * S),))["slowest"]

    assert step["ago"] == 2
    assert step["words"].startswith("step 4711 decode of chat took 62.0 ms")


def test_those_that_took_most_longer_than_their_like_come_first():
    usual = replace(SLOW, tenant="batch", elapsed=3.02, median=3.0)

    assert [step["tenant"] for step in of(slowest=(usual, SLOW))["slowest"]] == ["chat", "batch"]


def test_one_kind_does_not_hide_the_others():
    other = replace(SLOW, step="prefill", elapsed=0.02)

    steps = [step["step"] for step in of(slowest=(*[SLOW] * 20, other))["slowest"]]

    assert steps == ["decode"] * 4 + ["prefill"]


def test_losses_are_told_with_what_they_mean():
    (lost,) = of(lost={"blame_migrated": 3, "mark_torn": 0})["lost"]

    assert (lost["reason"], lost["count"], lost["falsifies"]) == ("blame_migrated", 3, False)
    assert "moved" in lost["help"]


def test_causes_without_any_time_are_left_out():
    assert of()["recent"][0]["seconds"] == {"running": 40, "preempted": 5.4, "runqueue": 0.1}


def test_it_is_bounded_and_json():
    row, names = SUMMARY.recent[0], ["\u202e" * 64, "\ud800" * 64]
    rows = tuple(replace(row, tenant=f"{n}{names[n % 2]}") for n in range(6000))
    steps = tuple(replace(SLOW, tenant=f"{n}{names[n % 2]}") for n in range(1300))

    told = of(recent=rows, slowest=steps)

    assert told["more_recent"] == 5960
    assert len(json.dumps(told)) < 100_000
