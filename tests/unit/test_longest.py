"""Exemplars of deschedules: the longest of late, and who had the CPU."""

from __future__ import annotations

import numpy as np

from tracer.catalog import CAUSES
from tracer.kernel.btf import wire
from tracer.ledger.longest import MOST, LongestWaits

S = 1_000_000_000
CAUSE = {cause.name: at for at, cause in enumerate(CAUSES)}


def outliers(*rows):
    """(ns, at_ns, cause, comm) each."""
    made = np.zeros(len(rows), wire().dtype("outlier"))
    for row, (ns, at_ns, cause, comm) in zip(made, rows, strict=True):
        row["wait"]["ns"], row["wait"]["at_ns"], row["wait"]["cause"] = ns, at_ns, CAUSE[cause]
        row["wait"]["by"]["comm"], row["wait"]["by"]["tid"] = comm, bool(comm)
        row["step"], row["tid"] = 7, 42
    return made


def told(waits, now_ns=10 * S):
    exemplars = waits.exemplars(["chat", "batch"], now_ns, 1000.0)
    return {key: each.value for key, (each,) in exemplars.items()}


def test_of_every_ten_seconds_the_longest_are_kept_whole_in_their_order():
    waits = LongestWaits(60)
    waits.add(outliers((9_000_000, 1 * S, "steal", b"")), np.zeros(1, np.int32))
    seen = waits.seen
    ns = np.random.default_rng(1).permutation(3 * MOST) + 1_000_000
    rows = [(int(n), 11 * S + at, "preempted", b"a") for at, n in enumerate(ns)]
    for first in range(0, len(rows), 50):
        waits.add(outliers(*rows[first : first + 50]), np.full(50, 1, np.int32))

    kept, tenant = waits.since(seen)

    longest = sorted(ns[ns >= 1_000_000 + 2 * MOST])
    assert sorted(kept["wait"]["ns"]) == longest
    assert (np.diff(kept["wait"]["at_ns"].astype(int)) > 0).all()
    assert set(tenant) == {1}
    assert len(waits.since(0)[0]) == MOST + 1


def test_the_longest_of_each_tenant_and_cause_is_kept():
    waits = LongestWaits(60)
    batch = outliers(
        (3_000_000, 9 * S, "preempted", b"a"),
        (5_000_000, 9 * S, "preempted", b"b"),
        (2_000_000, 9 * S, "quota", b""),
        (9_000_000, 9 * S, "preempted", b"c"),
    )
    waits.add(batch, np.array([0, 0, 0, 1], np.int32))
    waits.add(outliers((4_000_000, 9 * S, "preempted", b"d")), np.zeros(1, np.int32))

    assert told(waits) == {
        ("chat", "preempted"): 0.005,
        ("chat", "quota"): 0.002,
        ("batch", "preempted"): 0.009,
    }


def test_an_exemplar_says_when_in_which_step_and_by_whom():
    waits = LongestWaits(60)
    waits.add(outliers((5_000_000, 9 * S, "preempted", b"hog\x1b")), np.zeros(1, np.int32))

    ((exemplar,),) = waits.exemplars(["chat"], 10 * S, 1000.0).values()
    assert exemplar.labels == {"step_number": "7", "tid": "42", "aggressor": "hog\\x1b"}
    assert exemplar.unix_seconds == 999.0


def test_one_that_is_too_old_gives_way_and_is_not_told():
    waits = LongestWaits(60)
    waits.add(outliers((5_000_000, 1 * S, "preempted", b"a")), np.zeros(1, np.int32))
    assert told(waits, 100 * S) == {}

    waits.add(outliers((3_000_000, 99 * S, "preempted", b"a")), np.zeros(1, np.int32))
    assert told(waits, 100 * S) == {("chat", "preempted"): 0.003}
