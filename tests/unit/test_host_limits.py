"""Limits: quotas of all groups around a process, real-time budgets, in every version of cgroups."""

from __future__ import annotations

import pytest

from tests.trees import planted, write
from tracer.host import limits
from tracer.host.facts import Known, Unknown
from tracer.host.hierarchy import groups_of
from tracer.host.limits import RealtimeBudget


def cpu_max(sys, group, content):
    write(sys / "fs/cgroup" / group / "cpu.max", content)


def test_quotas_of_all_groups_around_a_process_count(tmp_path):
    cpu_max(tmp_path, "pods", "max 100000")
    cpu_max(tmp_path, "pods/a", "400000 100000")
    cpu_max(tmp_path, "pods/a/b", "50000 20000")
    write(tmp_path / "fs/cgroup/pods/a/cpu.stat", "nr_periods 9\\nnr_throttled 2")

    inner, outer = limits.quotas({"": "/pods/a/b"}, tmp_path).value

    assert ("/pods/a/b", 2.5) == (inner.group, inner.cpus)
    assert isinstance(inner.throttled, Unknown)
    assert ("/pods/a", 4.0, 9, 2) == (
        outer.group,
        outer.cpus,
        outer.periods.value,
        outer.throttled.value,
    )


def test_version_1_writes_quota_and_period_apart(tmp_path):
    group = tmp_path / "fs/cgroup/cpu,cpuacct/pod"
    write(group / "cpu.cfs_quota_us", "150000")
    write(group / "cpu.cfs_period_us", "100000")
    write(tmp_path / "fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1")

    (quota,) = limits.quotas({"cpu,cpuacct": "/pod", "": "/"}, tmp_path).value

    assert ("/cpu,cpuacct/pod", 1.5) == (quota.group, quota.cpus)


def test_beside_version_1_the_unified_hierarchy_is_mounted_below(tmp_path):
    cpu_max(tmp_path, "unified/pod", "100000 100000")

    (quota,) = limits.quotas({"name=systemd": "/pod", "": "/pod"}, tmp_path).value

    assert 1.0 == quota.cpus


def test_no_quota_is_known_as_none(tmp_path):
    cpu_max(tmp_path, "pod", "max 100000")

    assert () == limits.quotas({"": "/pod"}, tmp_path).value


@pytest.mark.parametrize(
    ("groups", "reason"),
    [
        ({"": "/../pod"}, "the group /../pod lies outside of this cgroup namespace"),
        ({"memory": "/"}, "no cgroup hierarchy with the controller cpu"),
        ({"": "/gone"}, "does not exist: the group is not mounted here"),
    ],
)
def test_a_group_that_cannot_be_seen_is_unknown(groups, reason, tmp_path):
    assert reason in limits.quotas(groups, tmp_path).reason


def test_groups_of_a_process_are_by_controllers(tmp_path):
    write(tmp_path / "7/cgroup", "4:cpu,cpuacct:/a:b\\n0::/c")

    assert {"cpu,cpuacct": "/a:b", "": "/c"} == groups_of(7, tmp_path).value


def test_the_budget_of_a_version_1_group():
    _, sys = planted("flat_vm")
    pod = "/kubepods/pod01234567-89ab-cdef-0123-456789abcdef"

    budget = limits.group_realtime({"cpu,cpuacct": pod}, sys)

    assert (RealtimeBudget(500_000, 1_000_000), 500_000) == (budget.value, budget.value.pause_us)


def test_version_2_has_no_budget_of_a_group(tmp_path):
    cpu_max(tmp_path, "pod", "max 100000")

    assert isinstance(limits.group_realtime({"": "/pod"}, tmp_path), Unknown)


@pytest.mark.parametrize(("runtime", "pause_us"), [("950000", 50_000), ("-1", 0)])
def test_the_global_budget(runtime, pause_us, tmp_path):
    write(tmp_path / "sys/kernel/sched_rt_runtime_us", runtime)
    write(tmp_path / "sys/kernel/sched_rt_period_us", "1000000")

    assert pause_us == limits.global_realtime(tmp_path).value.pause_us


def test_the_fair_server_leaves_the_rest_of_its_period(tmp_path):
    for name, ns in (("runtime", "50000000"), ("period", "1000000000")):
        write(tmp_path / f"kernel/debug/sched/fair_server/cpu0/{name}", ns)

    assert RealtimeBudget(950_000, 1_000_000) == limits.fair_server(tmp_path).value


def test_a_fair_server_that_cannot_be_read_is_unknown(tmp_path):
    assert "debugfs is locked" in limits.fair_server(tmp_path).reason


def test_a_budget_without_its_period_is_unknown(tmp_path):
    write(tmp_path / "sys/kernel/sched_rt_runtime_us", "950000")

    assert not isinstance(limits.global_realtime(tmp_path), Known)
