"""
Kernel tests: real programs on this kernel, compared with what the victims saw themselves.

They need root. Without it they skip with the reason; ``KERNEL_TESTS=1`` (as in CI) makes that a
failure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.kernel.harness import Trace, Victim, kernel_side
from tracer.kernel.btf import Btf
from tracer.kernel.hooks import plan
from tracer.kernel.trace import KernelTrace

PTMX_MAJOR = 5
"""A device that every machine has stands for the accelerators, in the victim ``device``."""


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
