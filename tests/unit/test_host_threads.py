"""Threads, interrupts, settings and the kubelet: who may run where."""

from __future__ import annotations

import os
import threading

import pytest

from tests.trees import plant, planted, write
from tracer.host import threads
from tracer.host.facts import Unknown
from tracer.host.interrupts import arriving_on, interrupts
from tracer.host.kubelet import cpu_manager
from tracer.host.settings import IdleState, Settings
from tracer.host.threads import Allowed, RealtimeThread


def test_real_time_threads_are_found_among_all():
    proc, _ = planted("flat_vm")

    assert (RealtimeThread(70, 71, "inference", "FIFO", 50),) == threads.realtime(proc)


def test_the_kernel_s_own_real_time_threads_are_left_out(tmp_path):
    fields = ["S"] + ["0"] * 49
    fields[6], fields[37], fields[38] = str(0x00200000), "99", "1"
    write(tmp_path / "18/task/18/stat", f"18 (migration/0) {' '.join(fields)}")

    assert () == threads.realtime(tmp_path)


def test_a_thread_of_this_process_is_found_once_it_is_real_time():
    """The kernel's own files: fields are where we look for them."""
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        os.sched_setscheduler(other.native_id, os.SCHED_RR, os.sched_param(7))
    except PermissionError:
        pytest.skip("setting a real-time policy needs CAP_SYS_NICE")
    finally:
        found = threads.realtime(pid=os.getpid())
        done.set()
        other.join()

    assert [(other.native_id, "RR", 7)] == [(t.tid, t.policy, t.priority) for t in found]


def test_threads_are_counted_by_where_they_may_run():
    proc, _ = planted("flat_vm")
    node = frozenset({0})

    assert {Allowed(frozenset(range(88)), node): 2, Allowed(frozenset(range(8, 16)), node): 1} == (
        threads.allowed(70, proc).value
    )


def test_a_process_that_is_gone_has_no_threads(tmp_path):
    assert Unknown("process 7 has no thread that can be read") == threads.allowed(7, tmp_path)


@pytest.mark.parametrize(
    ("name", "groups", "expected"),
    [
        ("flat_vm", {"cpuset": "/"}, range(88)),
        ("two_sockets", {"": "/kubepods.slice/kubepods-pod1.slice/inference.scope"}, range(8, 16)),
    ],
)
def test_what_a_group_leaves_its_threads(name, groups, expected):
    _, sys = planted(name)

    assert Allowed(frozenset(expected), frozenset({0})) == threads.cpuset(groups, sys).value


def test_interrupts_that_arrive_on_given_cpus():
    proc, _ = planted("two_sockets")

    found = interrupts(proc).value

    assert [40, 41] == [each.number for each in found]
    assert ["eth0-rx-1"] == [each.name for each in arriving_on(found, frozenset(range(8, 16)))]
    assert [] == arriving_on(found, frozenset({16}))


def test_settings_of_a_xeon():
    settings = Settings.read(*planted("xeon"))

    assert ("always", "always") == (settings.huge_pages.value, settings.defrag.value)
    assert {"powersave": 224} == settings.governors.value
    assert IdleState("C6", 290) == settings.deepest_idle.value
    assert 1.2 == settings.cpu_pressure.value
    assert frozenset() == settings.nohz_full.value


def test_an_idle_state_that_is_disabled_does_not_count(tmp_path):
    proc, sys = plant("xeon", tmp_path)
    write(sys / "devices/system/cpu/cpu0/cpuidle/state2/disable", "1")

    assert IdleState("C1E", 2) == Settings.read(proc, sys).deepest_idle.value


def test_without_files_every_setting_is_unknown(tmp_path):
    settings = Settings.read(tmp_path, tmp_path)

    assert all(isinstance(getattr(settings, name), Unknown) for name in settings.__slots__)


def test_the_kubelet_s_cpus():
    proc, _ = planted("two_sockets")

    manager = cpu_manager(proc).value

    assert ("static", frozenset(range(8, 16))) == (manager.policy, manager.exclusive)
    assert not manager.shared & manager.exclusive


@pytest.mark.parametrize("content", ["", "[1]", '{"entries": {"p": {"c": "x"}}}'])
def test_a_state_file_of_another_shape_is_unknown(content, tmp_path):
    write(tmp_path / "1/root/var/lib/kubelet/cpu_manager_state", content)

    assert isinstance(cpu_manager(tmp_path), Unknown)
