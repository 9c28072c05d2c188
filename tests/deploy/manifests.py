"""The Kubernetes objects as they stand in ``deploy/``, and as kustomize puts them together."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"

Object = dict[str, Any]


def daemonset() -> Object:
    found: Object = yaml.safe_load((DEPLOY / "base/daemonset.yaml").read_text())
    return found


def container() -> Object:
    """The agent's container."""
    (found,) = daemonset()["spec"]["template"]["spec"]["containers"]
    return dict(found)


def capabilities() -> list[str]:
    """The capabilities that the agent is given: ``bpf``, ``perfmon`` ..."""
    return [name.lower() for name in container()["securityContext"]["capabilities"]["add"]]


def assembled(directory: Path) -> list[Object]:
    """What ``kubectl apply -k`` would send. Skips, in CI fails, without kubectl."""
    if shutil.which("kubectl") is None:
        if os.environ.get("CI"):
            pytest.fail("CI needs kubectl")
        pytest.skip("kubectl, which has kustomize, is not installed")
    output = subprocess.run(
        ["kubectl", "kustomize", directory], check=True, capture_output=True, text=True
    )
    return list(yaml.safe_load_all(output.stdout))


def by_kind(objects: list[Object], kind: str) -> Object:
    """The only object of a kind."""
    (found,) = (each for each in objects if each["kind"] == kind)
    return found
