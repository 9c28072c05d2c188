"""What a running agent gives out: its metrics regularly, its live state to those who ask."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping

import psutil

from exporters.live import Live
from exporters.prometheus import Page
from tracer.agent.agent import Agent
from tracer.judge import doctor
from tracer.judge.overview import overview


def node_name() -> str:
    """As the cluster calls it: in a pod the machine's own name is the pod's."""
    return os.environ.get("NODE_NAME") or platform.node()


def publish(agent: Agent, page: Page, live: Live) -> None:
    families = tuple(agent.families())
    page.publish(families)
    live.record(families)


def answer(agent: Agent, live: Live) -> None:
    """Only when somebody asked: a summary costs more than to publish."""
    if live.wanted:
        live.publish(_describe(agent))


def _describe(agent: Agent) -> Callable[[], Mapping[str, object]]:
    """Takes the figures now. They are put into words, and the machine is looked at, when called."""
    summary, now_ns = agent.summary(), time.monotonic_ns()
    capabilities, placement = agent.capabilities, agent.memory.placement
    pids = [target.pid for target in agent.targets]

    def describe() -> Mapping[str, object]:
        alive = [pid for pid in pids if psutil.pid_exists(pid)]
        diagnosis = doctor.examine(pids=alive, measured=summary)
        return overview(summary, capabilities, placement, diagnosis, now_ns)

    return describe
