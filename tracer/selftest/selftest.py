"""Provoke each cause on this machine, and see whether it is named."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from tracer.catalog import CAUSES
from tracer.errors import UnavailableError, UsageError
from tracer.kernel.btf import Btf
from tracer.kernel.hooks import plan
from tracer.kernel.trace import KernelTrace
from tracer.model import Capability, Target
from tracer.selftest.cpus import undisturbed
from tracer.selftest.groups import has_rt_budget, remove_stale_groups
from tracer.selftest.observer import Observer
from tracer.selftest.provocations import NOT_PROVOKED, Provocation, provocations, provoke
from tracer.selftest.verdict import Row, Seen, Verdict, judge

_NO_OUTLIERS_NS = 1 << 62

# What a victim cannot help: nobody runs without it, and nothing else is called so.
_NEVER = ("running", "other_wait", "unexplained")
TESTED = tuple(cause.name for cause in CAUSES if cause.name not in _NEVER)


def selftest(
    targets: Iterable[Target],
    only: Sequence[str],
    anyway: bool,
    precision: float,
    say: Callable[[str], None],
) -> list[Row]:
    """
    A row per cause of ``only``, or of all.

    Stays away from CPUs that a target has to itself, unless ``anyway``. Raises UnavailableError
    when there are no others, or when the kernel side cannot be loaded.

    :param precision: share by which a victim's account and the tracer's may differ
    :param say: is told what happens next
    """
    causes = _chosen(only)
    usable = frozenset(os.sched_getaffinity(0)) if anyway else undisturbed(targets)
    os.sched_setaffinity(0, usable)  # victims inherit it
    remove_stale_groups()
    here = plan(Btf.of_kernel())
    capabilities = {each.name: each for each in here.capabilities}
    cpu = max(usable)  # interrupts tend to go to the first
    how = {each.cause: each for each in provocations(cpu, has_rt_budget())}
    with _interruptible(), KernelTrace(here, len(causes) + 1, _NO_OUTLIERS_NS) as kernel:
        observer = Observer(kernel)
        rows: list[Row] = []
        for cause in causes:
            say(f"{cause} ({len(rows) + 1} of {len(causes)})")
            provoke_it = partial(provoke, cpu=cpu, observer=observer, precision=precision)
            rows.append(_row(cause, how.get(cause), capabilities.get(cause), provoke_it))
    return rows


def _chosen(only: Sequence[str]) -> Sequence[str]:
    for name in only:
        if name not in TESTED:
            raise UsageError(f"--only {name}: not a cause of {', '.join(TESTED)}")
    return [cause for cause in TESTED if not only or cause in only]


def _row(
    cause: str,
    how: Provocation | None,
    capability: Capability | None,
    provoke_it: Callable[[Provocation], Seen],
) -> Row:
    if capability and not capability.available:
        return Row(cause, Verdict.NOT_SEEN, capability.reason)
    if how is None and capability is None:
        return Row(cause, Verdict.NOT_SEEN, "no probe measures it yet")
    if how is None:
        return Row(cause, Verdict.NOT_PROVOKED, NOT_PROVOKED[cause])
    try:
        row = judge(provoke_it(how))
        if row.verdict is Verdict.MISNAMED:  # a stopped machine misnames once, an error again
            row = judge(provoke_it(how))
    except UnavailableError as why:
        return Row(cause, Verdict.NOT_PROVOKED, str(why))
    return row


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let every polite signal unwind what was set up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise UnavailableError("interrupted; nothing was left behind") from None
