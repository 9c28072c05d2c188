"""What is loaded on a kernel, by its types and by what the machine says of itself."""

from __future__ import annotations

import pytest

from tracer.kernel.btf import Btf
from tracer.kernel.hooks import Plan, plan

TYPES = Btf.of_kernel()


class WithoutSteal(Btf):
    """This kernel's types, but a run queue that keeps no steal."""

    def has_field(self, name: str, *fields: str) -> bool:
        return fields != ("prev_steal_time_rq",) and super().has_field(name, *fields)


@pytest.fixture
def planned(tmp_path):
    """The plan for a machine with these flags, ticks of steal since boot, and kernel symbols."""

    def planned(flags: str, stolen: int, types: Btf = TYPES, symbols: str = "") -> Plan:
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
        (tmp_path / "stat").write_text(f"cpu 1 0 1 1 0 0 0 {stolen} 0 0\n")
        (tmp_path / "devices").write_text("Character devices:\n  1 mem\n\nBlock devices:\n")
        (tmp_path / "kallsyms").write_text(symbols)
        (tmp_path / "self").mkdir(exist_ok=True)
        (tmp_path / "self/status").write_text("CapEff:\t0000000000000000\n")
        return plan(types, proc=tmp_path, sys=tmp_path / "sys")

    return planned


def steal_of(plan: Plan):
    return next(each for each in plan.capabilities if each.name == "steal")


def test_a_steal_clock_that_has_told_of_nothing_is_read_but_not_claimed(planned):
    quiet = planned("fpu hypervisor", stolen=0)

    assert (quiet.steal_source, quiet.constants["has_steal_clock"]) == ("rq", True)
    assert not steal_of(quiet).available
    assert "since boot" in steal_of(quiet).reason


def test_a_steal_clock_that_has_told_of_something_is_claimed(planned):
    assert steal_of(planned("fpu hypervisor", stolen=3)).source == "rq"


def test_without_a_hypervisor_there_is_no_steal_clock_to_read(planned):
    metal = planned("fpu", stolen=0)

    assert (metal.steal_source, metal.constants["has_steal_clock"]) == ("none", False)
    assert "hypervisor" in steal_of(metal).reason


def test_the_object_follows_from_what_the_kernel_keeps_not_from_what_it_has_told(planned):
    types = WithoutSteal.of_kernel()
    listed = planned("fpu hypervisor", 0, types, "0000000000000000 D kernel_cpustat\n")
    unlisted = planned("fpu hypervisor", 3, types)

    assert (listed.steal_source, listed.stem) == ("cpustat", "tailtrace_cpustat")
    assert (unlisted.steal_source, unlisted.stem) == ("none", "tailtrace")
    assert "CONFIG_KALLSYMS_ALL" in steal_of(unlisted).reason
