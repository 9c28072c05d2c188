"""
Whether this machine's NUMA nodes mean anything. Where they do not, memory's place is unknown.

With one visible node every counter says that all memory is local. That is not good news: it is no
news.
"""

from __future__ import annotations

from tracer.host.machine import Machine
from tracer.judge.deceptions import deceptions
from tracer.judge.findings import Weight
from tracer.judge.words import count
from tracer.model import Capability

_DOUBTS = {
    "single_core_sockets",
    "larger_than_a_socket",
    "one_node_on_large_machine",
    "interleaved_memory",
    "cache_across_sockets",
}
"""Findings about nodes and sockets; a clock that misleads says nothing of memory."""


def doubt(machine: Machine) -> str:
    """Why the place of memory cannot be told here; empty where it can."""
    misleading = (
        finding.seen
        for finding in deceptions(machine)
        if finding.name in _DOUBTS and finding.weight is Weight.MISLEADS
    )
    if machine.node_count == 0:
        return "no NUMA node visible"
    if machine.node_count == 1:
        return "; ".join(["one node visible", *misleading])
    shown = f"{count(machine.node_count, 'node')} visible, but not to be believed"
    return next((f"{shown}: {seen}" for seen in misleading), "")


def placement(machine: Machine, no_move_pages: str = "") -> Capability:
    """``no_move_pages`` is the reason for which pages of large processes cannot be asked for."""
    if why_not := doubt(machine):
        return Capability("placement", "none", why_not)
    if no_move_pages:
        reason = f"{no_move_pages}, so memory of large processes is unknown"
        return Capability("placement", "numa_maps", reason)
    return Capability("placement", "numa_maps+move_pages")
