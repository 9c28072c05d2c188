"""An engine to trace, and a configuration that names it. They need root, as kernel tests do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.agent import CONFIGURATION, NAMESPACE
from tests.privileges import need_root


@pytest.fixture(scope="session")
def engine() -> Iterator[int]:
    """The pid of a running engine."""
    need_root()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.deploy.engine"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"POD_NAMESPACE": NAMESPACE},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture(scope="session")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("agent") / "tailtrace.yaml"
    file.write_text(CONFIGURATION)
    file.chmod(0o644)
    return file
