"""The tracer's books against the kernel's own counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tracer.catalog import CAUSES
from tracer.host.counters import ThreadCounters
from tracer.judge.books import as_dict, as_lines, differing, of_thread, totals
from tracer.kernel.btf import wire

MS = 1_000_000
BEFORE = ThreadCounters("decode", 100 * MS, 10, 20, 300, 1)
AFTER = ThreadCounters("decode", 600 * MS, 1010, 220, 800, 3)


@pytest.fixture
def pieces():
    """Two pieces that say what the counters say."""
    made = np.zeros(2, wire().dtype("piece"))
    made["switches"], made["involuntary"] = [700, 500], [150, 50]
    made["events"][:, :2] = [[400, 1], [100, 1]]
    for cause, ms in {"preempted": 190, "quota": 250, "runqueue": 50, "lock": 999}.items():
        made["ns"][0, [c.name for c in CAUSES].index(cause)] = ms * MS
    made["absent_ns"][1] = 10 * MS
    return made


def test_books_that_say_the_same_agree(pieces):
    thread = of_thread(7, 8, BEFORE, AFTER, pieces)

    told = {entry.what: (entry.traced, entry.kernel) for entry in thread.entries}
    assert told == {
        "waits for a CPU": (500 * MS, 500 * MS),
        "voluntary switches": (1000, 1000),
        "involuntary switches": (200, 200),
        "minor faults": (500, 500),
        "major faults": (2, 2),
    }
    assert differing([thread]) == []


def test_a_hundredth_and_the_edges_are_allowed_and_no_more(pieces):
    within = of_thread(7, 8, BEFORE, replace(AFTER, voluntary=1010 + 9), pieces)
    beyond = of_thread(7, 8, BEFORE, replace(AFTER, voluntary=1010 + 14), pieces)

    assert differing([within]) == []
    assert [(t.tid, entry.what) for t, entry in differing([beyond])] == [(8, "voluntary switches")]


def test_a_pieces_loss_shows(pieces):
    (thread, entry), *_ = differing([of_thread(7, 8, BEFORE, AFTER, pieces[1:])])

    assert (thread.tid, entry.traced < entry.kernel) == (8, True)


def test_totals_are_over_all_threads_and_the_worst_thread_is_named_first(pieces):
    good = of_thread(7, 8, BEFORE, AFTER, pieces)
    bad = of_thread(7, 9, BEFORE, replace(AFTER, comm="la\x1bte", run_delay_ns=900 * MS), pieces)
    lines = list(as_lines([good, bad], {"switch_unseen": 4, "piece_late": 0}))

    assert totals([good, bad])[0].kernel == 1300 * MS
    assert lines[0] == "the books of 2 threads against the kernel's own counts"
    assert any("500 ms" in line and "800 ms" in line and "7/9" in line for line in lines)
    assert not any("\x1b" in line for line in lines)
    assert lines[-1] == "lost: switch_unseen 4"


def test_the_dictionary_has_each_thread(pieces):
    told = as_dict([of_thread(7, 8, BEFORE, AFTER, pieces)], {})

    assert told["threads"][0]["entries"][3]["kernel"] == 500
