"""What the bench reads of BPF statistics and of its peers' words."""

import os
import threading
import time

import pytest

from bench.contenders import by_hook, complaint, parse_run_times
from bench.hooks import against, per_run, rows
from bench.load import cpu_ns, switches

SHOWN = [  # bpftool --json prog show
    {"id": 7, "type": "tracing", "name": "sched_switch", "run_time_ns": 900, "run_cnt": 3},
    {"id": 8, "type": "tracing", "name": "sched_wakeup"},
    {"id": 9, "type": "tracing", "name": "sched_switch", "run_time_ns": 500, "run_cnt": 1},
    {"id": 10, "type": "cgroup_skb"},
]


def test_only_the_peers_own_programs_are_read():
    assert {"sched_switch#7": (900, 3), "sched_wakeup#8": (0, 0)} == parse_run_times(
        SHOWN, frozenset({7, 8})
    )


def test_a_program_without_a_name_is_on_no_known_hook():
    times = parse_run_times(SHOWN, frozenset({10}))

    assert {(0, 0)} == set(by_hook(times).values())


@pytest.mark.parametrize(
    ("program", "hook"),
    [
        ("on_switch", "switch"),
        ("sched_switch_btf#3", "switch"),
        ("raw_tp__sched_s#3", "switch"),
        ("on_wakeup_new", "wakeup"),
        ("sched_wakeup_ne#3", "wakeup"),
        ("on_local_timer_entry", "interrupt"),
        ("on_irq_handler_exit", "interrupt"),
        ("on_softirq_exit", "softirq"),
    ],
)
def test_a_program_is_counted_on_its_hook_alone(program, hook):
    totals = by_hook({program: (10, 2)})

    assert {hook: (10, 2)} == {name: total for name, total in totals.items() if total[1]}


def test_programs_without_a_hook_to_compare_are_left_out():
    assert {(0, 0)} == set(by_hook({"on_fork": (10, 2), "tag_threads": (5, 1)}).values())


def test_a_cost_is_that_of_the_runs_in_between():
    before, after = by_hook({"on_switch": (1000, 10)}), by_hook({"on_switch": (2000, 30)})

    assert {"switch": 50.0} == per_run(before, after)


def test_ratios_are_taken_round_by_round():
    rounds_of = {
        "empty": [{"switch": 50.0}, {"switch": 100.0}, {"switch": 60.0}],
        "ours, untracked": [{"switch": 75.0}, {"switch": 150.0}, {"switch": 90.0}],
    }
    table = rows(rounds_of, {"bcc runqlat": "no kernel headers"}) + against(rounds_of)
    by_name = {row.what: row for row in table}

    ratio = by_name["switch: ours, untracked / empty"]
    assert (1.5, 1.5, True) == (ratio.measured.low, ratio.measured.high, ratio.kept)
    assert "no kernel headers" == by_name["bcc runqlat"].note
    assert None is by_name["switch: ours, tracked / empty"].measured


def test_a_timers_expiry_is_an_entry_and_an_exit():
    table = against({"ours, tracked": [{"timer": 50.0}, {"timer": 100.0}, {"timer": 60.0}]})
    by_name = {row.what: row for row in table}

    share = by_name["timer: ours, tracked, of a CPU with 1,000 expiries a second"]
    assert (pytest.approx(0.012), True) == (share.measured.median, share.kept)  # 2 x 60 ns x 1,000


def test_a_peer_says_itself_why_it_does_not_run():
    said = """\
modprobe: FATAL: Module kheaders not found
Unable to find kernel headers. Try rebuilding kernel with CONFIG_IKHEADERS=m
Traceback (most recent call last):
Exception: Failed to compile BPF module <text>
"""
    assert complaint(said).startswith("Unable to find kernel headers.")
    assert "out of words" == complaint("some\nout of words\n")
    assert "ended without a word" == complaint("")


def test_switches_are_those_of_all_threads(tmp_path):
    for tid, voluntary in {"41": 5, "42": 7}.items():
        task = tmp_path / "41" / "task" / tid
        task.mkdir(parents=True)
        (task / "status").write_text(
            f"Name:\tload\nvoluntary_ctxt_switches:\t{voluntary}\nnonvoluntary_ctxt_switches:\t1\n"
        )

    assert 14 == switches(41, tmp_path)


def test_cpu_time_of_a_process_has_its_ended_threads():
    def spin():
        end = time.thread_time_ns() + 20_000_000
        while time.thread_time_ns() < end:
            pass

    before = cpu_ns(os.getpid())
    thread = threading.Thread(target=spin)
    thread.start()
    thread.join()

    assert cpu_ns(os.getpid()) - before >= 20_000_000
