"""The agent on a real workload: its figures are the workload's own, and its books close."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest
from numpy.typing import NDArray

from tests.kernel.harness import kernel_side
from tracer.agent.agent import Agent
from tracer.catalog import CAUSES
from tracer.config import Config, Match, Rule
from tracer.ledger.summary import Summary
from tracer.model import Steps
from workloads.rl_sampling import account

HERE = Path(__file__).parent
SECONDS = 20
UNEXPLAINED = [cause.name for cause in CAUSES].index("unexplained")


@dataclass
class Traced:
    summary: Summary
    steps: Steps
    kinds: list[str]
    truth: list[account.Timed]

    def of_kind(self, kind: str) -> Steps:
        """Steps that began when the tracer had long been watching."""
        began = self.steps.begin_ns > self.steps.begin_ns.min() + 3_000_000_000
        return self.steps.take(began & (self.steps.kind == self.kinds.index(kind)))


def agent_until(process: subprocess.Popen[bytes], config: Config) -> tuple[Agent, list[Steps]]:
    """Trace until the process ends."""
    steps: list[Steps] = []
    agent = Agent(config, steps.append)
    with kernel_side(), agent:
        agent.run(lambda: process.poll() is not None, lambda: list(agent.families()) and None)
    return agent, steps


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    file = tmp_path_factory.mktemp("truth") / "steps.jsonl"
    command = [sys.executable, "-m", "workloads.rl_sampling", "--antagonist", "--truth", str(file)]
    with subprocess.Popen(
        [*command, "--duration", str(SECONDS)], stdout=subprocess.DEVNULL
    ) as workload:
        agent, steps = agent_until(workload, Config())
    with file.open() as rows:
        truth = account.read(rows)
    return Traced(agent.summary(), Steps.concatenate(steps), agent.names.kinds, truth)


@pytest.mark.parametrize("kind", ["infer", "forward", "sample"])
def test_quantiles_are_those_that_the_workload_measured(traced: Traced, kind: str) -> None:
    steps = traced.of_kind(kind)
    first, last = int(steps.begin_ns.min()), int(steps.end_ns.max())
    truth = np.sort(
        [
            row.end_ns - row.begin_ns
            for row in traced.truth
            if row.step == kind
            and first - 1_000_000 < row.begin_ns
            and row.end_ns < last + 1_000_000
        ]
    )
    told = np.sort(steps.elapsed_ns)

    assert len(told) == pytest.approx(len(truth), abs=2)
    assert len(told) > 200
    for q in (0.5, 0.99):
        true = _quantile(truth, q)
        # The workload looks at the clock around the mark, some microseconds before and after it.
        assert _quantile(told, q) == pytest.approx(true, rel=0.016, abs=100_000)


def _quantile(sorted_ns: NDArray[np.int64], q: float) -> float:
    return float(sorted_ns[int(np.ceil(q * len(sorted_ns))) - 1])


def test_the_books_of_every_step_close(traced: Traced) -> None:
    """
    Within 0.1 % or 1 us of a step; and less than 1 % of all time is unexplained.

    A kernel that keeps switches to itself spoils with each a step and the stage in it.
    """
    steps = [traced.of_kind(kind) for kind in ("sample", "infer", "gather", "forward", "scatter")]
    everything = Steps.concatenate(steps)
    unexplained = np.abs(everything.ns[:, UNEXPLAINED])
    closed = unexplained <= np.maximum(1_000, everything.elapsed_ns // 1_000)

    assert len(everything) > 1_000
    assert (everything.ns.sum(axis=1) == everything.elapsed_ns).all()
    unseen = traced.summary.lost.get("switch_unseen", 0)
    assert (~closed).sum() <= 0.001 * len(everything) + 2 * unseen
    assert unexplained.sum() < 0.01 * everything.elapsed_ns.sum()


def test_slow_steps_are_explained_by_name(traced: Traced) -> None:
    row = next(row for row in traced.summary.blame if row.aggressor == "antagonist")

    assert row.seconds > 0.1
    assert any(step.aggressors for step in traced.summary.slowest)


def test_hostile_pages_are_refused_by_name_and_cost_nothing() -> None:
    ours = psutil.Process()
    good = (
        "import time, stepmark\nfor _ in range(900):\n with stepmark.step('fine'): time.sleep(0.01)"
    )
    everything = Match(cmdline="stepmark|hostile_page")
    config = Config(targets=(Rule(name="all", match=everything, tenant="{comm}"),))
    before = ours.memory_info().rss
    hostile = [
        subprocess.Popen(
            [sys.executable, str(HERE / "hostile_page.py"), kind, "20"], stdout=subprocess.PIPE
        )
        for kind in ("random", "garbage_rings", "huge_counts", "shrinking", "endless_writer")
    ]
    for process in hostile:
        assert process.stdout is not None
        assert process.stdout.readline() == b"spoiled\n"
    with subprocess.Popen([sys.executable, "-c", good]) as engine:
        agent, _ = agent_until(engine, config)
    for process in hostile:
        process.kill()
        process.wait()

    summary = agent.summary()
    (fine,) = (row for row in summary.rows if row.step == "fine")
    assert fine.count > 200
    assert "mark_implausible" in summary.lost, summary.lost
    assert summary.lost.keys() & {"page_truncated", "page_bad_size"}
    assert len(summary.rows) < 2_000
    assert ours.memory_info().rss - before < 64 << 20
    assert threading.active_count() == 1
