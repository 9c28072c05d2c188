"""The doctor: which deceptions it sees on which machine, and that it fits a screen."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.trees import NAMES, plant, planted, write
from tests.unit.summaries import DECODE, SUMMARY, by_cause
from tracer.errors import UsageError
from tracer.judge.doctor import HEIGHT, as_dict, as_lines, examine
from tracer.judge.finding_lines import WIDTH
from tracer.judge.findings import Sure, Weight
from tracer.ledger.stalls import StallRow

DECEPTIONS = {"single_core_sockets", "larger_than_a_socket", "one_node_on_large_machine"}
PROCESS = {"flat_vm": [70], "two_sockets": [70]}

EXPECTED = {
    "flat_vm": [
        *("single_core_sockets", "larger_than_a_socket", "one_node_on_large_machine"),
        *("silent_steal_clock", "group_realtime_budget", "realtime_budget", "hidden_threads"),
    ],
    "two_sockets": ["quota", "interrupts_on_pinned_cpus"],
    "epyc_nps0": ["interleaved_memory"],
    "epyc_nps1": ["numa_balancing", "governor"],
    "epyc_nps4": [],
    "xeon": ["numa_balancing", "huge_pages", "governor", "deep_idle"],
    "hyperv_guest": ["silent_steal_clock"],
    "kvm_guest": ["cpu_pressure", "hidden_threads"],
    "arm64": [],
}


def diagnose(name):
    return examine(*planted(name), PROCESS.get(name, []))


def diagnose_changed(name, directory, **changes):
    """With some of its files changed: path with ``/`` as ``__`` -> content."""
    proc, sys = plant(name, directory)
    for path, content in changes.items():
        write(directory / path.replace("__", "/"), content)
    return examine(proc, sys, PROCESS.get(name, []))


def names(diagnosis):
    return [finding.name for finding in diagnosis.findings]


def named(diagnosis, name):
    (finding,) = (f for f in diagnosis.findings if f.name == name)
    return finding


@pytest.mark.parametrize("name", NAMES)
def test_findings_on(name):
    assert EXPECTED[name] == names(diagnose(name))


def test_the_flat_vm_yields_the_three_deceptions():
    diagnosis = diagnose("flat_vm")

    assert set(names(diagnosis)) >= DECEPTIONS
    assert {Weight.MISLEADS} == {named(diagnosis, name).weight for name in DECEPTIONS}
    assert diagnosis.misleading


def test_its_host_yields_none():
    diagnosis = diagnose("two_sockets")

    assert not DECEPTIONS & set(names(diagnosis))
    assert not diagnosis.misleading


def test_88_cpus_are_only_likely_too_many_for_a_socket_of_84_cores():
    """Hyperthreads could hold them; 169 they could not."""
    finding = named(diagnose("flat_vm"), "larger_than_a_socket")

    assert finding.sure is Sure.LIKELY
    assert finding.seen == (
        "88 CPUs in one NUMA node, but a socket has 84 cores: so says the processor's name"
    )


def test_more_cpus_than_a_socket_has_threads_are_certainly_too_many(tmp_path):
    proc, sys = plant("flat_vm", tmp_path)
    cpuinfo = (proc / "cpuinfo").read_text().replace("9634 84-Core", "9124 16-Core")
    write(proc / "cpuinfo", cpuinfo)

    finding = named(examine(proc, sys), "larger_than_a_socket")

    assert finding.sure is Sure.CERTAIN


def test_a_vm_that_shows_its_nodes_is_not_too_large(tmp_path):
    diagnosis = diagnose_changed(
        "flat_vm",
        tmp_path,
        sys__devices__system__node__node0__cpulist="0-43",
        sys__devices__system__node__node1__cpulist="44-87",
    )

    assert {"single_core_sockets"} == DECEPTIONS & set(names(diagnosis))
    assert "unproven_nodes" in names(diagnosis)


def test_without_a_known_processor_no_size_is_guessed(tmp_path):
    proc, sys = plant("flat_vm", tmp_path)
    write(proc / "cpuinfo", "model name : Some CPU\\nflags : hypervisor")

    assert {"single_core_sockets"} == DECEPTIONS & set(names(examine(proc, sys)))


def test_whole_sockets_in_one_virtual_node_are_a_deception(tmp_path):
    diagnosis = diagnose_changed(
        "hyperv_guest", tmp_path, sys__devices__system__cpu__cpu0__topology__physical_package_id="1"
    )

    finding = named(diagnosis, "one_node_on_large_machine")
    assert (Sure.LIKELY, Weight.MISLEADS) == (finding.sure, finding.weight)


@pytest.mark.parametrize(
    ("online", "possible", "reason"),
    [
        ("0-7", "0-7", "up to 8 CPUs"),
        ("0-15", "0-127", "CPU hot-add turns virtual NUMA off"),
        ("0-15", "0-15", "may be all there is"),
    ],
)
def test_why_vmware_may_hide_nodes(online, possible, reason, tmp_path):
    diagnosis = diagnose_changed(
        "flat_vm",
        tmp_path,
        sys__devices__system__cpu__online=online,
        sys__devices__system__cpu__possible=possible,
        sys__devices__system__node__node0__cpulist=online,
    )

    assert reason in named(diagnosis, "nodes_not_shown").seen


def test_a_cache_across_sockets_is_made_up(tmp_path):
    diagnosis = diagnose_changed(
        "flat_vm",
        tmp_path,
        sys__devices__system__cpu__cpu1__cache__index3__shared_cpu_list="0-1",
    )

    assert (
        "CPUs 0-1, which are on different sockets" in named(diagnosis, "cache_across_sockets").seen
    )


@pytest.mark.parametrize(
    ("clock", "weight"), [("acpi_pm", Weight.COSTS), ("refined-jiffies", Weight.MISLEADS)]
)
def test_clocks_that_the_kernel_fell_back_to(clock, weight, tmp_path):
    diagnosis = diagnose_changed(
        "epyc_nps4",
        tmp_path,
        sys__devices__system__clocksource__clocksource0__current_clocksource=clock,
    )

    assert weight is named(diagnosis, "slow_clock").weight


def test_a_steal_clock_that_is_unknown_misleads_only_where_it_is_off_by_default(tmp_path):
    stat = {"proc__stat": "cpu 100 0 100 1000 0 0 0 0 0 0"}
    vmware = named(diagnose("flat_vm"), "silent_steal_clock")
    kvm = named(diagnose_changed("kvm_guest", tmp_path, **stat), "silent_steal_clock")

    assert (Weight.MISLEADS, Sure.LIKELY) == (vmware.weight, vmware.sure)
    assert "stealclock.enable" in vmware.action
    assert (Weight.NOTE, Sure.POSSIBLE) == (kvm.weight, kvm.sure)


def test_a_quota_that_was_used_up_costs():
    finding = named(diagnose("two_sockets"), "quota")

    assert (Weight.COSTS, Sure.CERTAIN) == (finding.weight, finding.sure)
    assert "quota of 8.00 CPUs" in finding.seen
    assert "12 of 1,000 periods" in finding.seen


def test_memory_of_another_node_than_the_cpus_is_named(tmp_path):
    status = "Cpus_allowed_list: 8-15\\nMems_allowed_list: 1"
    diagnosis = diagnose_changed("two_sockets", tmp_path, proc__70__task__70__status=status)

    assert named(diagnosis, "memory_elsewhere").seen == (
        "inference 70: 1 thread on CPUs of node 0 with memory of node 1 alone"
    )


def test_cpus_of_two_nodes_are_named(tmp_path):
    status = "Cpus_allowed_list: 0-167\\nMems_allowed_list: 0-1"
    diagnosis = diagnose_changed("two_sockets", tmp_path, proc__70__task__70__status=status)

    assert "interrupts_on_pinned_cpus" not in names(diagnosis)
    assert "node 0-1" in named(diagnosis, "spread_over_nodes").seen


def test_a_kubelet_that_gives_nobody_cpus_is_named(tmp_path):
    state = '{"policyName": "none", "defaultCpuSet": ""}'
    path = "proc__1__root__var__lib__kubelet__cpu_manager_state"

    assert "cpu_manager" in names(diagnose_changed("two_sockets", tmp_path, **{path: state}))


def test_the_most_important_comes_first():
    weights = [finding.weight for finding in diagnose("flat_vm").findings]

    assert sorted(weights, reverse=True) == weights


@pytest.mark.parametrize("name", NAMES)
def test_it_fits_a_screen(name):
    diagnosis = diagnose(name)

    assert len(as_lines(diagnosis)) <= HEIGHT
    assert max(map(len, [*as_lines(diagnosis), *as_lines(diagnosis, full=True)])) <= WIDTH


def test_all_that_misleads_is_on_the_screen_of_the_flat_vm():
    lines = as_lines(diagnose("flat_vm"))

    assert lines[0] == "tailtrace: measurements of this machine mislead: 4 findings marked !!"
    assert 4 == sum(line.startswith("!! ") for line in lines)
    assert "   3 more findings, and details: --full" in lines


def test_in_full_every_finding_and_everything_unknown_is_there():
    lines = as_lines(diagnose("flat_vm"), full=True)

    assert 7 == sum(line[:3] in ("!! ", "!  ", "-  ") for line in lines)
    at = lines.index("not known here")
    assert any("machine.settings.governors: no CPU shows" in line for line in lines[at:])
    assert any("machine.hypervisor.steal_clock: none since boot" in line for line in lines[at:])


def test_names_of_strangers_cannot_write_to_the_terminal(tmp_path):
    diagnosis = diagnose_changed("two_sockets", tmp_path, proc__70__comm="\x1b[2Jinference")

    assert not any("\x1b" in line for line in as_lines(diagnosis, full=True))


def test_a_machine_that_shows_nothing_is_unknown_not_fine(tmp_path):
    diagnosis = examine(tmp_path / "proc", tmp_path / "sys")

    assert ["unknown_hypervisor"] == names(diagnosis)
    assert "machine  virtual or not: unknown; processor unnamed; 0 CPUs" in as_lines(diagnosis)[1]


def test_a_process_that_is_gone_is_named(tmp_path):
    with pytest.raises(UsageError, match=f"no process 7 in {tmp_path}: give the pid"):
        examine(tmp_path, tmp_path, [7])


def test_the_dictionary_is_json_with_values_and_reasons():
    again = json.loads(json.dumps(as_dict(diagnose("two_sockets"))))

    assert again["misleading"] is False
    assert "0-167" == again["machine"]["topology"]["online"]["value"]
    assert "reason" in again["machine"]["fair_server"]
    assert ["costs", "certain"] == [again["findings"][0][key] for key in ("weight", "sure")]
    assert "8-15" == again["workloads"][0]["allowed"]["value"][0]["key"]["cpus"]


def test_this_machine_can_be_examined():
    diagnosis = examine()

    assert diagnosis.machine.cpu_count > 0
    assert len(as_lines(diagnosis)) <= HEIGHT


STALLED = replace(
    SUMMARY,
    rows=(replace(DECODE, tail=by_cause(running=10.0, stall=380.0, preempted=3.0, net=0.5)),),
    stalls=(StallRow(scope="all", count=3, seconds=0.9, longest=0.4),),
)


def test_what_was_measured_says_what_carries_the_tail_and_what_can_help():
    diagnosis = examine(*planted("flat_vm"), [70], STALLED)
    text = " ".join(" ".join(as_lines(diagnosis)).split())

    assert "chat decode: the tail is 383 ms longer than the median, carried by tier 0" in text
    assert names(diagnosis)[0] == "stalls"
    assert "3 x the whole machine, 900 ms, longest 400 ms" in text
    gains = {remedy.name: remedy.gain_at_most_ns.value for remedy in diagnosis.remedies[:2]}
    assert gains["fewer virtual CPUs"] == 380_000_000
    assert len(as_lines(diagnosis)) <= HEIGHT


def test_what_was_measured_is_in_the_dictionary():
    told = json.loads(json.dumps(as_dict(examine(*planted("flat_vm"), [70], STALLED))))

    assert told["ranking"]["carrier"]["number"] == 0
    assert told["ranking"]["tiers"][0]["ns"]["value"] == 380_000_000


def test_a_quota_s_tail_is_no_stall_s():
    throttled = replace(STALLED, rows=(replace(DECODE, tail=by_cause(running=10, quota=380)),))

    diagnosis = examine(*planted("flat_vm"), [70], replace(throttled, stalls=()))

    assert diagnosis.ranking.carrier.number == 1
    assert not any(name.startswith("stalls") for name in names(diagnosis))
