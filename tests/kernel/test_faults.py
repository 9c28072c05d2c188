"""Page faults are those that the kernel counts, each in the step that it happened in."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.kernel import programs
from tests.kernel.harness import Program, Trace
from tracer.kernel.btf import wire

EVENTS = wire().names("event", "EVENT_")
FAULTS = [EVENTS.index("fault_minor"), EVENTS.index("fault_major")]


def test_faults_of_each_step_are_those_of_getrusage(trace: Trace, tmp_path: Path) -> None:
    it = Program(programs.build(programs.FAULTS, tmp_path))
    trace.follow(it.pid)
    it.go()

    step, *truth = np.array([line.split() for line in it.output().splitlines()], int).T

    pieces = trace.pieces(it.pid)
    counted = np.zeros((step[-1] + 1, len(FAULTS)), int)
    np.add.at(counted, pieces["step"], pieces["events"][:, FAULTS])
    assert sum(truth[1]) == len(step) // 4
    assert counted[step].tolist() == np.transpose(truth).tolist()
    assert trace.lost() == {}
