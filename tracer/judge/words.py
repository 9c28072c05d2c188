"""Numbers and causes in words that people use, in lines that fit a screen."""

from __future__ import annotations

import textwrap

WIDTH = 100
"""Columns."""

CAUSES: dict[str, str] = {
    "running": "running",
    "irq": "in interrupts",
    "softirq": "in soft interrupts",
    "fault": "handling page faults",
    "numa_migrate": "moving pages to its node",
    "steal": "stolen by the hypervisor",
    "stall": "stalled with its CPU",
    "preempted": "preempted",
    "runqueue": "in the run queue",
    "quota": "throttled by the CPU quota",
    "rt_limit": "throttled by the real-time limit",
    "lock": "waiting for a lock",
    "io": "waiting for storage",
    "fault_io": "blocked in page faults",
    "net": "waiting for a peer",
    "gpu": "waiting for an accelerator",
    "sleep": "asleep",
    "other_wait": "in other waits",
    "unexplained": "unexplained",
}
"""What a thread did in a cause, to follow a duration: ``3 ms in the run queue``."""

EVENTS: dict[str, str] = {
    "fault_minor": "minor page fault",
    "fault_major": "major page fault",
    "alloc_local": "local new page",
    "alloc_remote": "remote new page",
    "hint_local": "local hint fault",
    "hint_remote": "remote hint fault",
    "migrate_balancer": "balancing page migration",
    "migrate_request": "requested page migration",
    "migrate_other": "other page migration",
    "move_cache": "cross-cache move",
    "move_node": "cross-node move",
    "balance_move": "balancing move",
    "balance_swap": "balancing swap",
    "balance_stick": "refused balancing move",
}
"""One of what is counted, to follow a number."""

_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))
_HOUR = 3600
_LONG = 10_000  # seconds from which on hours say more


def duration(seconds: float) -> str:
    """Three digits and a unit that suits: ``31.2 ms``. What rounds to no microsecond is ``0``."""
    size = abs(seconds)
    if size >= _LONG:
        return f"{seconds / _HOUR:,.1f} h"
    for unit, scale in _UNITS:
        if size >= 0.9995 * scale:
            value = size / scale
            digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
            return f"{'-' if seconds < 0 else ''}{value:,.{digits}f} {unit}"
    return "0"


def percent(part: float, whole: float) -> str:
    """``4.2 %``; a dash where there is no whole."""
    if not whole:
        return "-"
    value = 100 * part / whole
    return f"{value:.{0 if abs(value) >= 9.95 else 1}f} %"


def count(number: int, noun: str) -> str:
    """``1 step``, ``5,214 steps``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def compact(number: int) -> str:
    """At most nine characters: ``5,214``, ``120 M``."""
    return f"{number:,}" if number < 10_000_000 else f"{number / 1e6:,.0f} M"


def clipped(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def wrapped(text: str, indent: str = "") -> list[str]:
    """Lines of at most WIDTH columns; those after the first are indented by two more."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_on_hyphens=False,
    )
