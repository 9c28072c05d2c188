"""
Kernel tests: real programs on this kernel, compared with what the victims saw themselves.

They need root. Without it they skip with the reason; ``KERNEL_TESTS=1`` (as in CI) makes that a
failure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel.harness import Trace, Victim, kernel_side
from tracer.kernel.btf import Btf
from tracer.kernel.hooks import plan
from tracer.kernel.trace import KernelTrace

HERE = Path(__file__).parent
PTMX_MAJOR = 5
"""A device that every machine has stands for the accelerators, in the victim ``device``."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    These tests hold two clocks against each other to 1 %, on machines that others use, too. One
    that fails is asked again, twice at most; the summary tells which.
    """
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=3))


@pytest.fixture
def trace() -> Iterator[Trace]:
    with kernel_side():
        here = plan(Btf.of_kernel())
        here.constants["accelerator_majors"] = [PTMX_MAJOR, 0, 0, 0, 0, 0, 0, 0]
        with KernelTrace(here, tenant_slots=8, outlier_ns=10_000) as kernel:
            yield Trace(kernel)


@pytest.fixture
def victim() -> Iterator[type[Victim]]:
    """Start victims with ``victim(...)``; whatever is still running is killed at the end."""
    yield Victim
    Victim.kill_all()


@pytest.fixture
def cpu() -> int:
    """The CPU on which victims and aggressors meet."""
    return max(os.sched_getaffinity(0))
