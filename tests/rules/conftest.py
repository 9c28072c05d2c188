"""A node with plausible values in every metric, and a real Prometheus that scrapes it."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from exporters.prometheus import Page
from exporters.server import Address, serving
from tracer.catalog import CAUSES, DESCHEDULE, DESCHEDULES, KERNEL_LOSSES, METRICS, Metric, Type
from tracer.model import Exemplar, Family, Histogram

EDGES = np.geomspace(1e-5, 1.28, 18)
LABEL_VALUES: dict[str, Sequence[str]] = {
    "tenant": ["chat", "batch"],
    "step": ["decode", "prefill"],
    "cause": [cause.name for cause in CAUSES],
    "victim": ["chat", "batch"],
    "aggressor": ["batch", "grpc-worker"],
    "cpu": ["0", "1"],
    "capability": ["steal", "quota"],
    "source": ["rq"],
    "reason": [loss.name for loss in KERNEL_LOSSES],
    "hook": ["sched_switch", "sched_wakeup"],
}


def node(seconds: float) -> list[Family]:
    """Every metric of the catalog, as of a node that has been up for so long."""
    return [_family(metric, seconds) for metric in METRICS]


def _family(metric: Metric, seconds: float) -> Family:
    rows = list(product(*(LABEL_VALUES[label] for label in metric.labels)))
    if metric is DESCHEDULE:
        rows = [row for row in rows if row[1] in DESCHEDULES]
    if metric.type is not Type.HISTOGRAM:
        each = 1.0 if metric.type is Type.GAUGE else 0.01 * seconds
        return Family(metric, dict.fromkeys(rows, each))
    counts = (seconds * np.geomspace(100, 0.1, len(EDGES) + 1)).astype(np.int64)
    exemplar = Exemplar(0.1, {"step": "4711", "aggressor": "grpc-worker"}, time.time())
    return Family(
        metric,
        dict.fromkeys(rows, Histogram(counts, float(counts[:-1] @ EDGES))),
        EDGES,
        {row: [exemplar] for row in rows},
    )


class Prometheus:
    """The HTTP API of a running server."""

    def __init__(self, url: str) -> None:
        self._url = url

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant vector. Raises HTTPError when the expression is wrong."""
        result: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return result

    def get(self, endpoint: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self._url}/api/v1/{endpoint}?{query}", timeout=20) as reply:
            return json.load(reply)["data"]

    def is_up(self) -> bool:
        try:
            return bool(self.query("vector(1)"))
        except urllib.error.URLError:
            return False


@contextmanager
def running_prometheus(
    directory: Path, target: Address, rules: Sequence[Path] = ()
) -> Iterator[Prometheus]:
    """A server of its own that scrapes the target each second."""
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(path.resolve()) for path in rules],
        "scrape_configs": [
            {
                "job_name": "tailtrace",
                "static_configs": [{"targets": ["{}:{}".format(*target)]}],
            }
        ],
    }
    (directory / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    listen = f"127.0.0.1:{free_port()}"
    command = [
        "prometheus",
        f"--config.file={directory}/prometheus.yml",
        f"--storage.tsdb.path={directory}/data",
        f"--web.listen-address={listen}",
        "--enable-feature=exemplar-storage",
    ]
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            prometheus = Prometheus(f"http://{listen}")
            wait_until(prometheus.is_up)
            yield prometheus
        finally:
            process.terminate()
            process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(holds: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"did not happen within {seconds:g} s")
        time.sleep(0.1)


@pytest.fixture(scope="session")
def full_page() -> Page:
    page = Page(interval_seconds=3600)
    page.publish(node(seconds=60))
    return page


@pytest.fixture(scope="session")
def prometheus(full_page: Page, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Scraped the page twice, a minute of the node's life apart."""
    with (
        serving(("127.0.0.1", 0), full_page) as address,
        running_prometheus(tmp_path_factory.mktemp("prometheus"), address) as prometheus,
    ):
        wait_until(lambda: prometheus.query("tailtrace_self_drain_seconds_total == 0.6"))
        full_page.publish(node(seconds=120))
        wait_until(lambda: prometheus.query("tailtrace_self_drain_seconds_total == 1.2"))
        yield prometheus
