"""Verdicts on segments and processes, what is said of them, and where nothing can be said."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.trees import plant, planted, write
from tracer.config import ExpectedNode
from tracer.host.facts import Known, Unknown, value_of
from tracer.host.machine import Machine
from tracer.host.threads import Allowed
from tracer.judge import locality
from tracer.judge.finding_lines import WIDTH
from tracer.judge.findings import Sure
from tracer.judge.memory import as_dict, as_lines
from tracer.judge.misplaced import misplaced
from tracer.judge.placement import NOT_TRACED, Verdict, judge, mismatch_by_tenant, segment_name
from tracer.memory.devices import Accelerator
from tracer.memory.first_touch import FirstTouch, Toucher
from tracer.memory.numastat import Counts, Drift, Trend
from tracer.memory.pages import Pages
from tracer.memory.pinning import Placed
from tracer.memory.process import ProcessMemory
from tracer.memory.segments import Segment
from tracer.memory.watch import MemoryState, TargetMemory
from tracer.model import Target

ON_1 = Placed(Allowed(frozenset({2, 3}), frozenset({0, 1})), frozenset({1}), Known("default"))


CARDS = {
    "0000:3b:00.0": Accelerator("0000:3b:00.0", Known(0), Known(frozenset()), ("0000:3a:00.0",)),
    "0000:af:00.0": Accelerator("0000:af:00.0", Known(1), Known(frozenset()), ()),
    "0000:d8:00.0": Accelerator("0000:d8:00.0", Unknown("-1"), Unknown(""), ()),
}


def user(pid=7, *, runs=None, private=None, pinned=ON_1, tenant="chat", accelerators=(), locked=0):
    pages = Unknown("it has ended") if private is None else Known(Pages(private))
    return TargetMemory(
        Target(1, pid, 0, "engine", tenant),
        {1: 5.0} if runs is None else runs,
        Known(ProcessMemory(pages, {}, {}, {}, Known(locked))),
        Known(((pinned, 3),)),
        Known(frozenset(accelerators)),
        0.001,
    )


def queue(pages, *, policy="default", pids=(7,), error=0.0):
    path = "/dev/shm/rl_sampling-k3_x (deleted)"
    told = Unknown("too large") if policy is None else Known(policy)
    return Segment(((0, 26), 77), path, 1 << 20, pids, Pages(pages, error), told)


def state(*segments, users=None, drift=None):
    return MemoryState(2.0, Known({}), drift or {}, tuple(users or [user()]), segments, CARDS, 0)


def verdict_on(segment, *rules, **runs):
    (found,) = judge(state(segment, users=[user(**runs)]), rules).segments
    return found


@pytest.mark.parametrize(
    ("pages", "policy", "runs", "verdict", "source"),
    [
        ({1: 100}, "default", {1: 5.0}, Verdict.PLACED, "where its threads run"),
        ({0: 83, 1: 17}, "default", {1: 5.0}, Verdict.MISPLACED, "where its threads run"),
        ({0: 100}, "bind:0", {0: 5.0}, Verdict.PLACED, "policy bind:0"),
        ({0: 100}, "bind:1", {1: 5.0}, Verdict.MISPLACED, "policy bind:1"),
        ({0: 100}, "bind:0", {1: 5.0}, Verdict.MISPLACED, "policy bind:0"),
        ({0: 50, 1: 50}, "interleave:0-1", {0: 1.0, 1: 1.0}, Verdict.SHARED, None),
        ({0: 100}, "default", {0: 1.0, 1: 1.0}, Verdict.SHARED, None),
        ({0: 100}, "default", {}, Verdict.UNKNOWN, None),
        ({}, "default", {1: 5.0}, Verdict.UNKNOWN, None),
        ({1: 100}, None, {1: 5.0}, Verdict.PLACED, "where its threads run"),
    ],
)
def test_verdict(pages, policy, runs, verdict, source):
    found = verdict_on(queue(pages, policy=policy), runs=runs)

    assert found.verdict is verdict
    assert source is None or found.expected.source == source


def test_configuration_decides_before_policy_and_threads():
    rule = ExpectedNode(segment="/dev/shm/rl_sampling-*", node=0)
    found = verdict_on(queue({1: 100}, policy="bind:1"), rule)

    assert (found.verdict, found.expected) == (
        Verdict.MISPLACED,
        Known(frozenset({0}), "configuration"),
    )


def test_configuration_of_another_segment_decides_nothing():
    found = verdict_on(queue({1: 100}), ExpectedNode(segment="/memfd:*", node=0))

    assert found.verdict is Verdict.PLACED


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/dev/shm/rl_sampling-k3x_abc (deleted)", "/dev/shm/rl_sampling-*"),
        ("/dev/shm/psm_4f1c88aa", "/dev/shm/psm_*"),
        ("/dev/shm/torch_123_456_0", "/dev/shm/torch_*"),
        ("/memfd:queue (deleted)", "/memfd:queue"),
        ("/SYSV0000002a (deleted)", "/SYSV0000002a"),
        ("/dev/shm/a\x1b[31m", "/dev/shm/a\\x1b[31m"),
    ],
)
def test_names_are_those_of_a_kind_and_can_be_shown(path, name):
    assert segment_name(path) == name


def test_a_misplaced_queue_is_named_with_its_user_s_pinning():
    (finding,) = misplaced(judge(state(queue({0: 83, 1: 17}))))

    assert finding.seen == (
        "/dev/shm/rl_sampling-* is 83 % on node 0, 17 % on node 1, but expected on node 1 (where"
        " its threads run); engine (pid 7) is pinned to node 1, memory unbound"
    )
    assert finding.sure is Sure.CERTAIN


def test_a_queue_bound_to_the_wrong_node_is_where_it_should_be_and_still_remote():
    (finding,) = misplaced(judge(state(queue({0: 100}, policy="bind:0", error=0.01))))

    assert "is 100 % on node 0, but its threads ran 100 % on node 1;" in finding.seen
    assert finding.sure is Sure.LIKELY


TOUCHED_ON_0 = FirstTouch((Toucher(9, 9, "loader", 0, 47),))
BY_TOUCH = Known({((0, 26), 77): TOUCHED_ON_0}, "fentry")


def test_a_queue_that_lies_where_it_was_touched_first_says_by_whom_and_who_should():
    placement = judge(state(queue({0: 100})), first=BY_TOUCH)
    (finding,) = misplaced(placement)

    said = "touched first by loader (pid 9) on node 0: 100 % of 47 pages seen"
    assert finding.seen.endswith(f"; {said}")
    assert finding.action.startswith("have a thread on node 1 touch it first, or bind it")
    assert f"  {said}" in as_lines(placement)
    (segment,) = as_dict(placement)["segments"]
    assert segment["first_touch"] == {
        "pages": 47,
        "source": "fentry",
        "by": [{"pid": 9, "tid": 9, "name": "loader", "node": 0, "pages": 47}],
    }


def test_of_a_queue_that_is_bound_first_touch_decides_nothing():
    (finding,) = misplaced(judge(state(queue({0: 100}, policy="bind:0")), first=BY_TOUCH))

    assert "touched first by loader" in finding.seen
    assert finding.action.startswith("bind it before its first touch")


def test_why_nobody_is_known_to_have_touched_is_told_once_for_all_segments():
    segments = queue({1: 100}), replace(queue({1: 50}), identity=((0, 26), 78), path="/memfd:other")
    lines = {
        name: "\n".join(as_lines(judge(state(*segments), first=first)))
        for name, first in {"agent": BY_TOUCH, "command": NOT_TRACED}.items()
    }

    assert lines["command"].count("who touched them first is not known: only an agent") == 1
    assert lines["agent"].count("who touched /memfd:other first is not known: none of its") == 1


def test_a_process_whose_private_memory_is_elsewhere_is_named():
    (finding,) = misplaced(judge(state(users=[user(private={0: 900, 1: 100})])))

    assert finding.seen == (
        "private memory of engine (pid 7) is 90 % on node 0, 10 % on node 1, but it ran 100 % on"
        " node 1; it is pinned to node 1, memory unbound"
    )


@pytest.mark.parametrize(
    "seen",
    [
        user(private={1: 100}),
        user(private={0: 19, 1: 81}),
        user(private={0: 100}, runs={0: 1.0, 1: 1.0}),
        user(private={0: 100}, runs={}),
        user(private=None),
    ],
    ids=["local", "nearly", "runs everywhere", "does not run", "unknown"],
)
def test_nothing_is_said_of_a_process_that_is(seen):
    assert [] == list(misplaced(judge(state(users=[seen]))))


def test_a_card_on_the_other_socket_is_named_with_the_way_to_it():
    seen = user(private={1: 100}, accelerators=CARDS)

    (finding,) = misplaced(judge(state(users=[seen])))

    assert finding.seen == (
        "accelerator 0000:3b:00.0 is on node 0, behind 0000:3a:00.0; engine (pid 7), which uses it,"
        " ran 100 % on node 1; its private memory is 100 % on node 1"
    )


def test_a_card_near_the_threads_but_not_their_memory_is_named():
    seen = user(private={0: 100}, accelerators=["0000:af:00.0"], locked=64 << 20)

    _, finding = misplaced(judge(state(users=[seen])))

    assert finding.seen == (
        "accelerator 0000:af:00.0 is on node 1; engine (pid 7), which uses it, ran 100 % on node 1;"
        " its private memory is 100 % on node 0, 64.0 MiB locked or pinned"
    )
    assert "--membind=1" in finding.action


@pytest.mark.parametrize(
    "seen",
    [
        user(private={1: 100}, accelerators=["0000:af:00.0"]),
        user(private={1: 100}, accelerators=["0000:d8:00.0"]),
        user(private={0: 50, 1: 50}, runs={0: 1.0, 1: 1.0}, accelerators=["0000:3b:00.0"]),
    ],
    ids=["near", "node not known", "everywhere"],
)
def test_nothing_is_said_of_a_card_that_is(seen):
    assert [] == list(misplaced(judge(state(users=[seen]))))


def test_each_card_is_told_with_its_node_the_way_to_it_and_its_users():
    users = [user(7, accelerators=["0000:3b:00.0"]), user(8)]
    lines = list(as_lines(judge(state(users=users))))

    assert "accelerator 0000:3b:00.0  node 0, behind 0000:3a:00.0; used by engine (pid 7)" in lines
    assert "accelerator 0000:d8:00.0  node unknown: -1" in lines


def test_shared_segments_count_for_each_user_and_tenants_are_summed():
    users = [
        user(7, runs={1: 3.0}, private={1: 100}),
        user(8, runs={0: 1.0}, private={0: 100}),
        user(9, runs={0: 1.0}, private=None),
    ]
    placement = judge(state(queue({0: 200}, pids=(7,)), users=users))

    own = [value_of(each.mismatch) for each in placement.targets]
    assert own == [pytest.approx(2 / 3), 0.0, None]
    by_tenant = mismatch_by_tenant(placement.targets, lambda name: name)
    assert by_tenant == {"chat": pytest.approx(0.5)}  # runs 1/4 and 3/4, pages 3/4 and 1/4


def test_the_report_fits_its_width_and_json_has_what_is_known():
    remote, missed = (Trend(Unknown("few"), Known(usual, "since boot")) for usual in (0.1, 0.0))
    drift = {0: Drift(Counts(9, 1, 9, 2), remote, missed)}
    placement = judge(state(queue({0: 83, 1: 17}), users=[user(), user(8)], drift=drift))
    lines = list(as_lines(placement))
    told = json.loads(json.dumps(as_dict(placement)))

    assert lines[0] == "tailtrace: 2 processes, 1 shared segment, 1 finding in 2.00 s"
    assert max(map(len, lines)) <= WIDTH
    assert told["nodes"][0]["drift"] == {"reason": "few"}
    assert told["segments"][0]["verdict"] == "misplaced"
    assert told["processes"][0]["pages"] == {"reason": "it has ended"}


@pytest.mark.parametrize(
    ("name", "why_not"),
    [
        ("two_sockets", ""),
        ("epyc_nps1", ""),
        ("epyc_nps4", ""),
        ("kvm_guest", "one node visible"),
        ("flat_vm", "one node visible; 88 sockets of one core each"),
        ("epyc_nps0", "one node visible; 2 sockets"),
    ],
)
def test_where_nodes_mean_nothing_placement_cannot_be_told(name, why_not):
    machine = Machine.read(*planted(name))

    assert locality.doubt(machine).startswith(why_not)
    assert locality.placement(machine).available == (why_not == "")


def test_nodes_that_cannot_be_sockets_are_not_believed(tmp_path):
    proc, sys = plant("two_sockets", tmp_path)
    write(sys / "devices/system/cpu/cpu0/cache/index3/shared_cpu_list", "0-167")

    assert locality.doubt(Machine.read(proc, sys)).startswith(
        "2 nodes visible, but not to be believed: a level 3 cache shared by CPUs 0-167"
    )
