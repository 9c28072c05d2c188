"""
A real Prometheus scrapes a real agent while a hog takes the CPU from an engine: somebody is woken,
told who did it, and finds it on every dashboard.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import yaml

from dashboards.alerts import Objectives, groups
from tests.privileges import need_root
from tests.programs import running, running_agent
from tests.rules.panels import QUERIES, filled
from tests.rules.prometheus_server import Prometheus, running_prometheus, wait_until

FASTER = 10
"""Every duration of the shipped rules, windows and ``for`` alike, is divided by this."""

CONFIGURATION = """
history: {directory: ""}
targets:
  - name: engine
    match: {marked: true, cmdline: tests.kernel.spike}
"""


def compressed_rules() -> str:
    """The shipped rules, with nothing changed but the pace of time."""
    shipped = yaml.safe_dump(groups(Objectives()), sort_keys=False, width=1000)
    return re.sub(r"\b(\d+)m\b", lambda found: f"{int(found[1]) * 60 // FASTER}s", shipped)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Scrapes an agent beside the engine and the hog, and evaluates the shipped rules."""
    need_root()
    tmp_path, cpu = tmp_path_factory.mktemp("node"), max(os.sched_getaffinity(0))
    (tmp_path / "rules.yaml").write_text(compressed_rules())
    with ExitStack() as running_now:
        for program in ("engine", "hog"):
            command = [sys.executable, "-m", "tests.kernel.spike", program, cpu]
            running_now.enter_context(running(*command))
        address = running_now.enter_context(running_agent(tmp_path, CONFIGURATION))
        yield running_now.enter_context(
            running_prometheus(tmp_path, address, [tmp_path / "rules.yaml"])
        )


def firing(prometheus: Prometheus, name: str) -> list[dict[str, Any]]:
    return [
        alert
        for alert in prometheus.get("alerts")["alerts"]
        if alert["labels"]["alertname"] == name and alert["state"] == "firing"
    ]


def test_a_spike_raises_the_alert_which_names_cause_and_aggressor(prometheus):
    wait_until(lambda: firing(prometheus, "TailtraceDescheduleSpike"), seconds=120)

    (alert,) = firing(prometheus, "TailtraceDescheduleSpike")
    assert ("chat", "decode", "critical") == tuple(
        alert["labels"][name] for name in ("tenant", "step", "severity")
    )
    said = alert["annotations"]["description"]
    assert "most of all by preempted; hog had the CPU longest meanwhile" in said


def test_every_panel_shows_what_this_machine_can_tell(prometheus):
    def silent() -> dict[str, set[str]]:
        """Panels without data, and of which series that would be."""
        return {
            panel: set(re.findall(r"\b[a-z_:]*(?:tailtrace|p999|p50)[a-z0-9_:]*", expression))
            for panel, expression in QUERIES.items()
            if not prometheus.query(filled(expression))
        }

    def is_silent_for_no_reason() -> bool:
        there = set(prometheus.get("label/__name__/values"))
        return any(asked <= there for asked in silent().values())

    wait_until(lambda: not is_silent_for_no_reason())
    assert len(silent()) < len(QUERIES) / 4


def test_compression_changes_durations_only():
    shipped = groups(Objectives())
    restored = re.sub(
        r"\b(\d+)s\b", lambda found: f"{int(found[1]) * FASTER // 60}m", compressed_rules()
    )

    assert shipped == yaml.safe_load(restored)
