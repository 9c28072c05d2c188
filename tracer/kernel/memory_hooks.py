"""What this kernel tells of a thread's memory: its page faults and what they cost."""

from __future__ import annotations

from collections.abc import Callable

from tracer.kernel.btf import Btf
from tracer.model import Capability

Refusal = Callable[[str], str]
"""Why a kernel function cannot be traced; empty when it can (``fentry.refusal``)."""

_NO_BEGIN = (
    "no event tells when a fault begins: one between a step's last event and its end may be "
    "counted for the step after it"
)


def fault_hooks(
    kernel: Btf, refusal: Refusal
) -> tuple[tuple[str, ...], tuple[Capability, Capability]]:
    """
    The programs, and whether faults can be counted and timed.

    The counts are always the task's own. A program at the begin of a fault makes sure that it is
    counted for the step that it is in.
    """
    refused = refusal("handle_mm_fault")
    if not refused:
        programs: tuple[str, ...] = ("on_fault_begin", "on_fault_end")
        counted = Capability("fault count", "task+fentry")
    elif kernel.tracepoint_arguments("page_fault_user"):
        programs = ("on_fault_user", "on_fault_kernel")
        counted = Capability("fault count", "task+tp_btf")
    else:
        programs, counted = (), Capability("fault count", "task", _NO_BEGIN)
    return programs, (counted, Capability("fault", "none" if refused else "fentry", refused))
