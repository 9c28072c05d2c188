"""Why a step was slow: in a sentence, and in full."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.summaries import GRPC, MS, NGINX, SLOW, by_event
from tracer.judge.explain import as_dict, in_full, sentence
from tracer.judge.words import WIDTH

ENDED = 1_800_000_000.25


def test_a_slow_step_is_explained_by_what_it_has_more_than_a_median_one():
    assert sentence(SLOW) == (
        "step 4711 decode of chat took 31.2 ms, 21.0 ms longer than the median: "
        "18.3 ms preempted by grpc-worker-3 (rl_sampling), 2.10 ms in the run queue."
    )


def test_several_aggressors_are_named_with_their_time():
    text = sentence(replace(SLOW, aggressors=(replace(GRPC, seconds=10 * MS), NGINX)))

    assert "18.3 ms preempted, 2.10 ms in the run queue." in text
    assert text.endswith(
        "Meanwhile on its CPU: grpc-worker-3 (rl_sampling) 10.0 ms, nginx 2.10 ms."
    )


def test_late_helpers_are_named():
    text = sentence(replace(SLOW, helper_wait=9 * MS, helper_worst=4 * MS))

    assert text.endswith("Its helper threads wanted a CPU for 9.00 ms, at worst 4.00 ms at once.")


def test_events_are_named_when_there_are_many_more_than_usual():
    many = by_event(fault_minor=1204, fault_major=3)
    text = sentence(replace(SLOW, events=many, usual_events=by_event(fault_minor=12.4)))

    assert text.endswith(
        "It had 1,204 minor page faults instead of 12, 3 major page faults instead of 0."
    )
    assert "page fault" not in sentence(replace(SLOW, events=many, usual_events=many))


def test_a_step_as_long_as_the_median_needs_no_cause():
    text = sentence(replace(SLOW, elapsed=10.2 * MS))

    assert text == "step 4711 decode of chat took 10.2 ms, no longer than the median."


def test_in_full_it_is_the_ledger_beside_the_median_steps():
    lines = in_full(SLOW, ENDED)

    at = next(i for i, line in enumerate(lines) if line.startswith("WHERE THE TIME WENT"))
    assert [line.split() for line in lines[at + 1 : at + 6]] == [
        ["running", "10.1", "ms", "32", "%", "9.60", "ms", "500", "us"],
        ["preempted", "18.3", "ms", "59", "%", "0", "18.3", "ms"],
        ["in", "the", "run", "queue", "2.10", "ms", "6.7", "%", "0", "2.10", "ms"],
        ["waiting", "for", "a", "peer", "700", "us", "2.2", "%", "600", "us", "100", "us"],
        ["all", "31.2", "ms", "10.2", "ms", "21.0", "ms"],
    ]


def test_in_full_it_has_time_thread_tenants_and_the_longest_deschedule():
    lines = in_full(SLOW, ENDED)

    assert "ended at 2027-01-15 08:00:00.250 UTC, thread 42; served chat 75 %, batch 25 %" in lines
    assert "left the CPU 12 times, of these 4 wanting to stay; 1 move to another CPU" in lines
    assert (
        "the longest deschedule: 9.10 ms preempted while grpc-worker-3 (thread 73) ran, until "
        "14.2 ms after the begin"
    ) in " ".join(map(str.strip, lines))


def test_in_full_every_aggressor_has_its_part_of_the_wait():
    step = replace(SLOW, aggressors=(replace(GRPC, seconds=9 * MS), NGINX), events={})
    lines = in_full(step, ENDED)

    assert [line.split() for line in lines[-3:]] == [
        ["grpc-worker-3", "(rl_sampling)", "9.00", "ms", "80", "%", "73", "of", "70"],
        ["nginx", "2.10", "ms", "19", "%", "80", "of", "80"],
        ["not", "known", "100", "us", "0.9", "%"],
    ]


def test_in_full_it_has_what_was_counted():
    lines = in_full(SLOW, ENDED)

    assert [line.split() for line in lines[-2:]] == [
        ["WHAT", "IT", "HAD", "THIS", "STEP", "USUAL"],
        ["minor", "page", "faults", "3", "1"],
    ]


def test_a_stage_names_its_step():
    assert "a stage of step 12;" in " ".join(in_full(replace(SLOW, parent=12), ENDED))


names = st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1, max_size=60)


@settings(deadline=None)
@given(names, st.floats(1e-6, 70))
def test_whatever_the_names_it_fits_the_screen(name, seconds):
    aggressor = replace(GRPC, name=name, comm=name[:15], seconds=seconds)
    step = replace(
        SLOW, tenant=name, step=name, shares={name: 1.0}, elapsed=seconds, aggressors=(aggressor,)
    )

    assert max(map(len, in_full(step, ENDED))) <= WIDTH


def test_the_dictionary_is_json():
    again = json.loads(json.dumps(as_dict(SLOW, ENDED)))

    assert again["worst"]["comm"] == "grpc-worker-3"
    assert again["ended_unix"] == ENDED
