"""
Steps, stages, ticks and queue waits: what an engine calls.

What a mark says (kind, tenants, shares) is resolved and packed once, and kept.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Callable, TypeVar, Union, cast

from stepmark import page as layout
from stepmark.calls import marked
from stepmark.label import Label
from stepmark.process import process
from stepmark.shares import shares_of
from stepmark.writer import thread

Tenants = Union[str, Mapping[str, int], None]
"""Whom a step serves: one tenant, several with weights, or those of the step it lies in."""

now_ns = time.monotonic_ns
"""CLOCK_MONOTONIC in ns, the clock of all marks: for ``queued``."""

Function = TypeVar("Function", bound=Callable[..., Any])
Kept = TypeVar("Kept")

KEPT_MARKS = 4096
"""Then keeping starts anew: an engine whose weights differ at every step must not leak."""


class Mark(Label):
    """
    A step kind and whom it serves. Usable any number of times, by all threads: as context
    manager, or as decorator of functions, generators and coroutines.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        thread.writer.begin(self)

    def __exit__(self, *_: object) -> None:
        thread.writer.end(self)

    def __call__(self, function: Function) -> Function:
        return cast(Function, marked(function, self))


def step(kind: str, tenants: Tenants = None) -> Mark:
    """
    One unit of inference work of this thread: a forward pass, a decode iteration.

    ``tenants`` is the one it serves, or several with weights (integers > 0); of more than 8 the
    largest are kept. A step inside a step is a stage, and serves the same tenants if it names none.
    Raises TypeError or ValueError for names and weights that are none.
    """
    key = (kind, tuple(tenants.items()) if tenants.__class__ is dict else tenants)
    try:
        return _steps[key]
    except (KeyError, TypeError):
        return _keep(_steps, key, _mark(kind, tenants))


def stage(kind: str) -> Mark:
    """A part of the step around it, for the same tenants. Outside of a step, a step."""
    return step(kind)


def tick(kind: str, tenants: Tenants = None) -> None:
    """
    End the step that this thread's last tick began, and begin the next at the same instant.

    For loops in which a step lasts from one output to the next. What lies open inside the step
    ends with it. ``tock`` ends the last step.
    """
    key = (kind, tuple(tenants.items()) if tenants.__class__ is dict else tenants)
    try:
        mark = _ticks[key]
    except (KeyError, TypeError):
        mark = _keep(_ticks, key, _mark(kind, tenants, True))
    thread.writer.tick(mark)


def tock() -> None:
    """End the step that this thread's last tick began."""
    thread.writer.tock()


def queued(since_ns: int, tenant: str) -> None:
    """
    A request of this tenant waited from ``since_ns`` (of ``now_ns``) until now.

    Raises ValueError when that lies in the future, as stamps of other clocks do.
    """
    now = now_ns()
    if since_ns > now:
        raise ValueError(f"queued since {since_ns} is yet to come: take it from now_ns()")
    thread.writer.queued(since_ns, now, _waits.get(tenant) or _keep(_waits, tenant, _wait(tenant)))


_steps: dict[Any, Mark] = {}
_ticks: dict[Any, Mark] = {}
_waits: dict[str, bytes] = {}


def _keep(kept: dict[Any, Kept], key: object, value: Kept) -> Kept:
    if len(kept) >= KEPT_MARKS:
        kept.clear()
    with suppress(TypeError):  # a mapping of a class of its own has no hash: resolved every time
        kept[key] = value
    return value


def _mark(kind: str, tenants: Tenants, ticks: bool = False) -> Mark:
    if not isinstance(kind, str):
        raise TypeError(f"step kind is {kind!r}, must be a str")
    return Mark(process.kind(kind), None if tenants is None else shares_of(tenants), ticks)


def _wait(tenant: str) -> bytes:
    shares = shares_of(tenant)
    return layout.DONE_TAIL.pack(layout.QUEUED, 0, shares.number, shares.packed)
