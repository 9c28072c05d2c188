"""Page faults are those that the kernel counts, each in the step that it happened in."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.kernel import programs
from tests.kernel.harness import Program, Trace, kernel_side
from tracer.agent.agent import Agent
from tracer.catalog import PAGE_FAULTS
from tracer.config import Config
from tracer.kernel.btf import wire

EVENTS = wire().names("event", "EVENT_")
FAULTS = [EVENTS.index("fault_minor"), EVENTS.index("fault_major")]


def test_faults_of_each_step_are_those_of_getrusage(trace: Trace, tmp_path: Path) -> None:
    it = Program(programs.build("faults", tmp_path))
    trace.follow(it.pid)
    it.go()

    step, *truth = np.array([line.split() for line in it.output().splitlines()], int).T

    pieces = trace.pieces(it.pid)
    counted = np.zeros((step[-1] + 1, len(FAULTS)), int)
    np.add.at(counted, pieces["step"], pieces["events"][:, FAULTS])
    assert sum(truth[1]) == len(step) // 4
    assert counted[step].tolist() == np.transpose(truth).tolist()
    assert trace.lost() == {}


def test_the_agent_adds_them_up_by_kind_of_step_and_tenant(tmp_path: Path) -> None:
    it = Program(programs.build("faults", tmp_path))
    seconds = iter(range(100))
    with kernel_side(), Agent(Config()) as agent:
        agent.run(
            lambda: it.process.poll() is not None,
            lambda: it.go() if next(seconds) == 2 else None,  # it is followed by now
        )
        exported = {family.metric: family.rows for family in agent.families()}
    truth = np.array([line.split() for line in it.output().splitlines()], int)
    (row,) = (row for row in agent.summary().rows if row.tenant == "victim")

    in_steps = [row.events["fault_minor"], row.events["fault_major"]]
    assert in_steps == truth[:, 1:].sum(axis=0).tolist()
    in_all = [exported[PAGE_FAULTS]["victim", kind] for kind in ("minor", "major")]
    assert in_all == in_steps
