"""
Write generated.yaml beside this file: dashboards and rules as Kubernetes objects.

Never committed, so it cannot be out of date. Options are those of ``python -m dashboards rules``.

examples:
  python deploy/monitoring/generate.py
  python deploy/monitoring/generate.py --step-ratio 3 --runbooks https://wiki.example/runbooks
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from dashboards.__main__ import RULES_FILE
from dashboards.__main__ import main as write_dashboards_and_rules

OUTPUT = Path(__file__).with_name("generated.yaml")


def objects(options: Sequence[str]) -> list[dict[str, Any]]:
    """One PrometheusRule, and a ConfigMap for each dashboard."""
    with TemporaryDirectory() as directory:
        write_dashboards_and_rules(["rules", directory, *options])
        write_dashboards_and_rules(["build", directory])
        return [_rule(Path(directory)), *_dashboards(Path(directory))]


def _rule(directory: Path) -> dict[str, Any]:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "tailtrace"},
        "spec": yaml.safe_load((directory / RULES_FILE).read_text()),
    }


def _dashboards(directory: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(directory.glob("*.json")):
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            # The label by which Grafana's sidecar finds dashboards.
            "metadata": {"name": path.stem, "labels": {"grafana_dashboard": "1"}},
            "data": {path.name: path.read_text()},
        }


if __name__ == "__main__":
    OUTPUT.write_text(yaml.safe_dump_all(objects(sys.argv[1:]), sort_keys=False))
