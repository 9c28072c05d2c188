"""The demo of a migration says which of its comparisons ended as it must not."""

from __future__ import annotations

import pytest

from lab.migration import Comparison, compare
from tests.unit.recorded import Drains, meta
from tracer.record.meta import Machine, MachineKind
from tracer.record.recorder import Recorder

TWO_NODES = Machine(
    kind=MachineKind.VIRTUAL, kernel="6.12.0", cpu_model="a CPU", cpus=4, numa_nodes=2
)


@pytest.mark.parametrize(("wanted", "as_wanted"), [("inconclusive", True), ("pass", False)])
def test_a_comparison_must_end_as_was_said(tmp_path, capfd, wanted, as_wanted):
    paths = [tmp_path / "before.db", tmp_path / "after.db"]
    for seed, path in enumerate(paths):
        drains = Drains(seed)
        with Recorder(path, meta(machine=TWO_NODES)) as recorder:
            recorder.write(drains.window())

    assert compare(Comparison("with one window of each", *paths, wanted)) is as_wanted

    shown, said = capfd.readouterr()
    assert "record at least 5 minutes" in shown
    assert ("WRONG" in said) is not as_wanted
