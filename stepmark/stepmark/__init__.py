"""
Marks for inference steps, which a tracer reads from memory shared with it.

    import stepmark

    with stepmark.step("decode", tenants={"chat": 9, "batch": 1}):
        with stepmark.stage("attention"):
            ...

No system call per step, no dependency, no waiting: with no tracer there, a mark is a few stores.
"""

from stepmark.marks import Mark, Tenants, now_ns, queued, stage, step, tick, tock
from stepmark.process import Status, process
from stepmark.wrap import wrap

status = process.status

__all__ = [
    "Mark",
    "Status",
    "Tenants",
    "now_ns",
    "queued",
    "stage",
    "status",
    "step",
    "tick",
    "tock",
    "wrap",
]
