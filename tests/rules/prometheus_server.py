"""A real Prometheus server, for as long as a test needs it."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml

from exporters.server import Address
from tests.programs import running


class Prometheus:
    """The HTTP API of a running server."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant vector. Raises HTTPError when the expression is wrong."""
        result: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return result

    def get(self, endpoint: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{endpoint}?{query}", timeout=20) as reply:
            return json.load(reply)["data"]

    def is_up(self) -> bool:
        try:
            return bool(self.query("vector(1)"))
        except urllib.error.URLError:
            return False


@contextmanager
def running_prometheus(
    directory: Path,
    target: Address,
    rules: Sequence[Path] = (),
    jobs: Mapping[str, Mapping[str, Any]] = MappingProxyType({"tailtrace": {}}),
) -> Iterator[Prometheus]:
    """
    A server of its own that scrapes the target each second.

    :param jobs: name -> how it scrapes, besides whom
    """
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(path.resolve()) for path in rules],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": ["{}:{}".format(*target)]}], **how}
            for job, how in jobs.items()
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
    with (directory / "log").open("w") as log, running(*command, log=log):
        prometheus = Prometheus(f"http://{listen}")
        wait_until(prometheus.is_up)
        yield prometheus


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
