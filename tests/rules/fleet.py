"""Agents' metrics of an hour, as raw durations and as a Prometheus server has scraped them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tracer.catalog import (
    DESCHEDULE,
    LOST,
    MACHINE,
    PROBE_AVAILABLE,
    SELF_CPU,
    STEP_ELAPSED,
    STEP_IS_STAGE,
    STEP_SECONDS,
)
from tracer.ledger.histogram import EDGES_SECONDS

SCRAPE, HOUR = 30, 3600
LES = [*(repr(edge) for edge in EDGES_SECONDS.tolist()), "+Inf"]


@dataclass
class Agent:
    """What one agent saw, from one hour on."""

    labels: str
    machine: str
    begin: int
    rng: np.random.Generator
    stalls: float
    """Part of the deschedules that are of 20 ms and more; of the steps that have one."""

    silent: tuple[int, int] = (0, 0)
    """Seconds of the hour between which it was not scraped."""

    elapsed: list[np.ndarray] = field(default_factory=list)
    deschedules: list[np.ndarray] = field(default_factory=list)
    sampling: list[np.ndarray] = field(default_factory=list)
    """Of each step the stage that depends on what is sampled: a natural tail."""

    def scrapes(self) -> Iterator[str]:
        """Lines by scrape, without the time."""
        for at in range(0, HOUR + 1, SCRAPE):
            lines = self._lines(at)
            if not self.silent[0] <= at < self.silent[1]:
                for line in lines:
                    yield f"{line} {self.begin + at}"

    def _lines(self, at: int) -> list[str]:
        if at:
            self._go_on()
        steps = np.concatenate([[], *self.elapsed])
        waits = np.concatenate([[], *self.deschedules])
        chat = f'tenant="chat",{self.labels}'
        decode, sample = (f'step="{step}",{chat}' for step in ("decode", "sample"))
        sampling = np.concatenate([[], *self.sampling])
        return [
            *_histogram(STEP_ELAPSED.name, decode, steps),
            *_histogram(STEP_ELAPSED.name, sample, sampling),
            f"{STEP_IS_STAGE.name}{{{decode}}} 0",
            f"{STEP_IS_STAGE.name}{{{sample}}} 1",
            *_histogram(DESCHEDULE.name, f'cause="steal",{chat}', waits),
            f'{STEP_SECONDS.name}{{cause="running",{decode}}} {steps.sum() - waits.sum()}',
            f'{STEP_SECONDS.name}{{cause="steal",{decode}}} {waits.sum()}',
            f'{STEP_SECONDS.name}{{cause="running",{sample}}} {sampling.sum()}',
            f'{LOST.name}{{reason="mark_torn",{self.labels}}} 0',
            f"{SELF_CPU.name}{{{self.labels}}} {at / 100}",
            f"{MACHINE.name}{{{self.machine},{self.labels}}} 1",
            f'{PROBE_AVAILABLE.name}{{capability="steal",source="rq",{self.labels}}} 1',
        ]

    def _go_on(self) -> None:
        n = int(self.rng.poisson(600))
        stalled = self.rng.random(n) < self.stalls
        waits = np.where(stalled, self.rng.uniform(0.02, 0.08, n), self.rng.uniform(4e-5, 4e-4, n))
        self.deschedules.append(waits)
        self.elapsed.append(self.rng.normal(0.010, 0.0002, n) + waits)
        self.sampling.append(self.rng.lognormal(np.log(0.001), 0.6, n))


def _histogram(name: str, labels: str, observed: np.ndarray) -> Iterator[str]:
    upto = [*np.searchsorted(np.sort(observed), EDGES_SECONDS, side="right"), len(observed)]
    for le, count in zip(LES, upto, strict=True):
        yield f'{name}_bucket{{le="{le}",{labels}}} {count}'
    yield f"{name}_count{{{labels}}} {len(observed)}"
    yield f"{name}_sum{{{labels}}} {observed.sum()}"


def load(directory: Path, agents: list[Agent]) -> None:
    """Make what they saw the data of a server that is started in the directory."""
    by_family: dict[str, list[str]] = {}
    for agent in agents:
        for line in agent.scrapes():
            by_family.setdefault(line.partition("{")[0], []).append(line)
    text = directory / "metrics.txt"
    text.write_text(
        "\n".join([line for lines in by_family.values() for line in lines] + ["# EOF\n"])
    )
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run([*command, str(text), str(directory / "data")], check=True, capture_output=True)
