"""
Which single accesses to memory went to another node: only the processor's own samples can tell.

AMD's IBS and Intel's PEBS sample loads with the place that answered (``perf_mem_data_src`` of
include/uapi/linux/perf_event.h). Virtual machines seldom have either. Everything else that the
tracer tells of memory is of allocations and of where pages are.
"""

from __future__ import annotations

from pathlib import Path

from tracer.model import Capability

_SAMPLERS = {"ibs_op": "type", "cpu": "events/mem-loads"}
"""Event source -> the file that is there when it samples loads."""


def remote_accesses(sys: Path = Path("/sys")) -> Capability:
    sources = sys / "bus/event_source/devices"
    there = [name for name, file in _SAMPLERS.items() if (sources / name / file).exists()]
    if there:
        reason = f"this version does not read {there[0]}, which this processor has"
    else:
        reason = "no performance counters that sample loads: neither AMD's IBS nor Intel's PEBS"
    return Capability("remote access", "none", reason)
