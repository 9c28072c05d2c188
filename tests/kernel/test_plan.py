"""What is asked of this kernel before anything is loaded."""

from __future__ import annotations

from pathlib import Path

from tests.kernel.harness import kernel_side
from tracer.kernel import fentry
from tracer.kernel.btf import Btf
from tracer.kernel.hooks import plan

OPEN = Path("/proc/self/fd")


def test_a_function_that_this_kernel_lacks_is_refused_by_name() -> None:
    refused = fentry.refusal(Btf.of_kernel(), "migrate_misplaced_pigeon")

    assert refused == "no function migrate_misplaced_pigeon() in this kernel's BTF"


def test_asking_leaves_nothing_open() -> None:
    before = sorted(OPEN.iterdir())
    with kernel_side():
        plan(Btf.of_kernel())
    fentry.refusal(Btf.of_kernel(), "migrate_misplaced_pigeon")

    assert sorted(OPEN.iterdir()) == before
