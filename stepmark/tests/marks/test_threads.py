"""Slots and rings of many threads, read while they write."""

from __future__ import annotations

import time

from stepmark import page as layout

HAMMER = """
import threading
assert stepmark.status().active
stop = threading.Event()
def hammer(name):
    decode = step('decode ' + name, {name: 3, 'all': 1})
    while not stop.is_set():
        with decode:
            with stage('sample ' + name): pass
        queued(now_ns(), name)
threads = [threading.Thread(target=hammer, args=(f't{i}',)) for i in range(6)]
for thread in threads: thread.start()
pause()
stop.set()
for thread in threads: thread.join()
"""


def test_every_whole_entry_is_what_its_thread_wrote(python):
    engine = python(HAMMER)
    page = engine.page()
    checked = 0
    while checked < 20_000:
        for slot in page.slots():
            entries = page.done(slot)
            overwritten = page.slot_at(slot.index).finished - slot.finished
            # The oldest that is left may be being written over.
            for done in entries[overwritten + 1 :]:
                assert done.whole
                assert_consistent(done)
                checked += 1
    assert engine.process.poll() is None


def assert_consistent(done):
    if done.what == layout.QUEUED:
        ((name, weight),) = done.shares.items()
        assert (done.number, done.parent, done.kind, weight) == (0, 0, "", 1)
    else:
        verb, name = done.kind.split()
        assert done.shares == {name: 3, "all": 1}
        assert (done.parent == 0) == (verb == "decode")
        assert verb == "decode" or done.parent == done.number - 1
    assert done.begin_ns <= done.end_ns <= time.monotonic_ns()


def test_a_whole_slot_is_what_its_thread_wrote(python):
    engine = python(HAMMER)
    page = engine.page()
    assert len(page.kinds_marked(12)) == 12
    engine.go_on()
    assert {slot.step for slot in page.slots()} == {0}


ONE_AFTER_ANOTHER = """
import threading
def mark():
    step('decode').__enter__()  # and dies inside of it
    print(threading.get_native_id())
for _ in range(600):
    thread = threading.Thread(target=mark)
    thread.start()
    thread.join()
"""


def test_slots_of_dead_threads_are_taken_over_and_numbers_go_on(python):
    engine = python(ONE_AFTER_ANOTHER)
    page = engine.page()
    slots = page.slots()

    assert page.lost()[0] == 0
    assert {slot.tid for slot in slots} <= {int(tid) for tid in engine.said}
    assert len(slots) <= layout.SLOTS
    # 600 threads in 256 slots: each slot was held twice or thrice, every step has a new number.
    assert sum(1 for slot in slots if slot.step > 1) > 200
    assert all(slot.whole and slot.kind == "decode" for slot in slots)


def test_a_slot_taken_over_is_in_no_step(python):
    engine = python(
        "import threading\n"
        "from stepmark.page import AT_SLOTS, SLOT_SIZE, Page\n"
        "from stepmark.writer import Writer\n"
        "page, tid = Page(), threading.get_native_id()\n"
        "def claimed():\n"
        "    slot = page.claim(tid)\n"
        "    print(page.words[(AT_SLOTS + slot * SLOT_SIZE) // 8 + 1])\n"
        "    return Writer(page, slot)\n"
        "for _ in range(3): claimed().begin(step('decode'))\n"
        "page.close()"
    )

    assert engine.said == ["0"] * 3


def test_threads_that_find_no_slot_are_counted_and_mark_nothing(python):
    engine = python(
        "import threading\n"
        "barrier = threading.Barrier(301)\n"
        "def mark():\n"
        "    for _ in range(2):\n"
        "        with step('decode'): pass\n"
        "    tick('a'); tock(); queued(now_ns(), 'chat')\n"
        "    barrier.wait(); barrier.wait()\n"
        "threads = [threading.Thread(target=mark) for _ in range(300)]\n"
        "for thread in threads: thread.start()\n"
        "barrier.wait(); pause(); barrier.wait()\n"
        "for thread in threads: thread.join()"
    )
    page = engine.page()
    slots = page.slots()

    assert len(slots) + page.lost()[0] == 300
    assert page.lost()[0] >= 300 - layout.SLOTS
    assert {slot.finished for slot in slots} == {4}
    engine.go_on()


def test_a_thread_is_found_by_its_number_alone(python):
    engine = python(HAMMER)

    for slot in engine.page().slots():
        assert (slot.index - slot.tid) % layout.SLOTS < layout.PROBES
    engine.go_on()
