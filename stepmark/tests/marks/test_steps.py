"""What the page says after steps, stages, ticks and queue waits."""

from __future__ import annotations

import pytest

from stepmark import page as layout


def told(done):
    """Number, parent and kind of each finished mark."""
    return [(it.number, it.parent, it.kind) for it in done]


def test_a_step_is_current_while_it_lasts_and_finished_after(python):
    engine = python("with step('decode', 'chat'): pause()")
    page = engine.page()
    inside = page.slot()

    assert (
        inside.whole,
        inside.step,
        inside.kind,
        inside.tenant,
        inside.finished,
    ) == (True, 1, "decode", "chat", 0)
    engine.go_on()
    after = page.slot()
    (done,) = page.done()

    assert (True, 0, 1, engine.pid) == (after.whole, after.step, after.finished, after.tid)
    assert (done.what, done.number, done.parent, done.kind) == (layout.STEP, 1, 0, "decode")
    assert done.shares == {"chat": 1}
    assert inside.since_ns == done.begin_ns < done.end_ns == after.since_ns


def test_times_are_those_of_the_monotonic_clock(python):
    engine = python("print(now_ns())\nwith step('a'): print(now_ns())\nprint(now_ns())")
    before, within, after = map(int, engine.said)
    (done,) = engine.page().done()

    assert before <= done.begin_ns <= within <= done.end_ns <= after


def test_a_stage_has_its_own_number_and_its_step_comes_back(python):
    engine = python(
        "with step('decode', 'chat'):\n"
        "    with stage('attention'): pause()\n"
        "    pause()\n"
        "    with stage('sample'): pass\n"
    )
    page = engine.page()

    assert (page.slot().step, page.slot().kind, page.slot().tenant) == (2, "attention", "chat")
    engine.go_on()
    assert (page.slot().step, page.slot().kind, page.slot().tenant) == (1, "decode", "chat")
    engine.go_on()
    assert told(page.done()) == [(2, 1, "attention"), (3, 1, "sample"), (1, 0, "decode")]


def test_a_stage_serves_whom_its_step_serves(python):
    engine = python("with step('decode', {'chat': 9, 'batch': 1}):\n    with stage('sample'): pass")

    assert [it.shares for it in engine.page().done()] == [{"chat": 9, "batch": 1}] * 2


def test_a_step_inside_a_step_is_a_stage_and_may_serve_somebody_else(python):
    engine = python("with step('decode', 'chat'):\n    with step('prefill', 'batch'): pass")
    inner, outer = engine.page().done()

    assert (outer.number, {"batch": 1}, {"chat": 1}) == (inner.parent, inner.shares, outer.shares)


def test_a_stage_outside_of_a_step_is_a_step_for_nobody(python):
    (done,) = python("with stage('load'): pass").page().done()

    assert (done.parent, done.kind, done.shares) == (0, "load", {})


def test_a_mark_can_be_kept_and_entered_inside_itself(python):
    engine = python("visit = step('visit')\nwith visit:\n    with visit: pass")

    assert told(engine.page().done()) == [(2, 1, "visit"), (1, 0, "visit")]


def test_a_step_that_raises_ends(python):
    engine = python("try:\n    with step('decode'): raise KeyError\nexcept KeyError: pass")

    assert (told(engine.page().done()), engine.page().slot().step) == ([(1, 0, "decode")], 0)


def test_a_tick_ends_one_step_and_begins_the_next_at_the_same_instant(python):
    engine = python("for _ in range(3): tick('decode', 'chat')\npause()\ntock()")
    page = engine.page()

    assert (page.slot().step, page.slot().kind, page.slot().tenant) == (3, "decode", "chat")
    engine.go_on()
    first, second, third = page.done()

    assert told(page.done()) == [(1, 0, "decode"), (2, 0, "decode"), (3, 0, "decode")]
    assert (first.end_ns, second.end_ns) == (second.begin_ns, third.begin_ns)
    assert page.slot().step == 0


def test_a_tock_without_a_tick_is_nothing(python):
    engine = python("tock()\nwith step('a'): tock()")

    assert told(engine.page().done()) == [(1, 0, "a")]


def test_stages_inside_a_tick_belong_to_its_step(python):
    engine = python("tick('decode')\nwith stage('sample'): pass\ntick('decode')\ntock()")

    assert told(engine.page().done()) == [(2, 1, "sample"), (1, 0, "decode"), (3, 0, "decode")]


def test_what_is_open_inside_a_tick_ends_with_it(python):
    engine = python("tick('decode')\nwith stage('sample'): tick('decode')\npause()")
    page = engine.page()

    assert told(page.done()) == [(2, 1, "sample"), (1, 0, "decode")]
    assert page.slot().step == 3  # leaving the ended stage took nothing away


def test_what_is_open_inside_a_step_ends_with_it(python):
    engine = python("with step('request'):\n    tick('decode')\ntick('other')\ntock()")

    assert told(engine.page().done()) == [(2, 1, "decode"), (1, 0, "request"), (3, 0, "other")]


def test_a_queue_wait_names_its_tenant_and_is_no_step(python):
    engine = python("since = now_ns()\nprint(since)\nqueued(since, 'chat')\nprint(now_ns())")
    since, after = map(int, engine.said)
    (done,) = engine.page().done()

    assert (
        done.what,
        done.number,
        done.parent,
        done.kind,
        done.shares,
    ) == (layout.QUEUED, 0, 0, "", {"chat": 1})
    assert (since, True) == (done.begin_ns, since <= done.end_ns <= after)


def test_a_queue_wait_by_another_clock_is_refused(python):
    engine = python(
        "import time\ntry: queued(time.time_ns(), 'chat')\nexcept ValueError as error: print(error)"
    )

    assert [line[-8:] for line in engine.said] == ["now_ns()"]


def test_the_ring_keeps_the_last_of_many(python):
    engine = python(f"for _ in range({layout.RING} * 2 + 5):\n    with step('a'): pass")
    done = engine.page().done()

    assert list(range(layout.RING + 6, 2 * layout.RING + 6)) == [it.number for it in done]
    assert all(it.whole for it in done)


@pytest.mark.parametrize("kind", ["7", "None", "b'decode'"])
def test_a_kind_that_is_no_text_is_refused(python, kind):
    engine = python(f"try: step({kind})\nexcept TypeError as error: print(error)")

    assert [f"step kind is {kind}, must be a str"] == engine.said
