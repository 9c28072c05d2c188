"""What is said of a cause after it was provoked: pure, from two accounts of the same seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from tracer import catalog
from tracer.catalog import TO_OTHERS, Group
from tracer.errors import UnavailableError
from tracer.judge.words import duration

_LEAST = 0.002  # seconds
_PER_WAIT = 20e-6  # seconds that one account or the other has of a wait's edges
_ENOUGH = 0.02  # seconds of which the error says something

_WAITS = tuple(
    cause.name
    for cause in catalog.CAUSES
    if cause.group in (Group.WANTED, Group.WAITED) and cause.name != "other_wait"
)
"""Of these the victim has none but the one provoked; in an ``other_wait`` it began."""


_MEANT = {"runqueue": ("sleep",)}
"""Waits without which a cause cannot be provoked: who never sleeps is never woken."""


class Verdict(StrEnum):
    NAMED = "named"
    MISNAMED = "misnamed"
    NOT_PROVOKED = "cannot be provoked here"
    NOT_SEEN = "cannot be seen here"


@dataclass(frozen=True, slots=True)
class Seen:
    """Two accounts of a victim's work. Times in seconds."""

    cause: str
    truth: float
    """By the victim: what was provoked, and what is ``beside`` it."""

    beside: tuple[str, ...]
    """Causes whose time the victim cannot tell from what was provoked: others' doing."""

    seconds: Mapping[str, float]
    """By the tracer: all causes."""

    waits: int
    """Times the victim left the CPU."""

    least: float | None = None
    """So much of the truth was the cause, by an account of its own; None: all but the others'."""

    nested: tuple[str, ...] = ()
    """Causes that may have had a part of that ``least``: they come in the midst of it."""

    precision: float = 0.01
    """Share by which the two may differ."""

    rival: float | None = None
    """CPU time of the rival meanwhile, by the kernel's clock for it; None: it does not matter."""

    blamed: float = 0.0
    """What the tracer says the rival took."""

    lost: Mapping[str, int] = field(default_factory=dict)
    """What the kernel side could not count meanwhile, by reason."""


@dataclass(frozen=True, slots=True)
class Row:
    cause: str
    verdict: Verdict
    reason: str = ""
    provoked: float | None = None
    measured: float | None = None

    @property
    def error(self) -> float | None:
        """Relative to what was provoked; None without a measurement."""
        if not self.provoked or self.measured is None:
            return None
        return (self.measured - self.provoked) / self.provoked


def judge(seen: Seen) -> Row:
    """Whether the tracer gave the cause its right name, and what of the truth was others' doing."""
    if not any(seen.seconds.values()):
        reason = "nothing was seen of the victim: this is not the host's pid namespace"
        return Row(seen.cause, Verdict.NOT_SEEN, reason)
    happened = seen.truth if seen.least is None else seen.least
    if happened < max(_ENOUGH, _tolerance(seen)):
        reason = f"it happened for {duration(happened)} only, too short to tell"
        return Row(seen.cause, Verdict.NOT_PROVOKED, reason)
    wrong = list(_objections(seen))
    verdict = Verdict.MISNAMED if wrong else Verdict.NAMED
    reason = ", ".join([*(wrong or _remarks(seen)), *_losses(seen)])
    return Row(seen.cause, verdict, reason, _provoked(seen), seen.seconds[seen.cause])


def _provoked(seen: Seen) -> float:
    if seen.least is not None:
        return seen.least
    return max(0.0, seen.truth - sum(_others(seen).values()))


def _tolerance(seen: Seen) -> float:
    return max(seen.precision * seen.truth, _LEAST, _edges(seen))


def _edges(seen: Seen) -> float:
    return seen.waits * _PER_WAIT


def _others(seen: Seen) -> dict[str, float]:
    """What others added to the truth, by the tracer."""
    return {name: seen.seconds[name] for name in seen.beside if name != seen.cause}


def _objections(seen: Seen) -> Iterator[str]:
    measured, tolerance = seen.seconds[seen.cause], _tolerance(seen)
    if measured > seen.truth + tolerance:
        yield f"{duration(measured - seen.truth)} too much"
    missing = _provoked(seen) - measured - sum(seen.seconds[name] for name in seen.nested)
    if missing > tolerance:
        yield f"{duration(missing)} of it are not accounted for"
    for name in TO_OTHERS:
        if seen.least is None and _others(seen).get(name, 0.0) > measured:
            yield f"most of it called {name}"
    for name in _WAITS:
        if (
            name not in (seen.cause, *TO_OTHERS, *_MEANT.get(seen.cause, ()))
            and seen.seconds[name] > tolerance
        ):
            yield f"{duration(seen.seconds[name])} called {name}"
    if seen.rival is not None and abs(seen.blamed - seen.rival) > 2 * tolerance:
        yield f"{duration(seen.blamed)} blamed on a rival that ran {duration(seen.rival)}"


def _remarks(seen: Seen) -> Iterator[str]:
    """What to know of the figures of a cause that was named."""
    tolerance = _tolerance(seen)
    if seen.rival is not None:
        yield f"{duration(seen.blamed)} by the rival, which ran {duration(seen.rival)}"
    if tolerance == _edges(seen):
        yield f"the edges of {seen.waits:,} waits are known to {duration(tolerance)}"
    for name, seconds in _others(seen).items():
        if seconds > tolerance:
            yield f"beside it {duration(seconds)} {name}"


def _losses(seen: Seen) -> Iterator[str]:
    """What makes a ledger wrong, and is known to."""
    for name, count in seen.lost.items():
        if count and name not in catalog.HARMLESS_LOSSES:
            yield f"lost: {count:,} {name}"


def exit_code(rows: Iterable[Row]) -> int:
    """0: all that happened was named; 1: something was misnamed; 3: nothing could be told."""
    verdicts = {row.verdict for row in rows}
    if Verdict.MISNAMED in verdicts:
        return 1
    return 0 if Verdict.NAMED in verdicts else UnavailableError.exit_code


def as_dict(rows: Iterable[Row]) -> dict[str, Any]:
    """For JSON. Times in seconds, errors as shares."""
    return {"causes": [asdict(row) | {"error": row.error} for row in rows]}


def as_lines(rows: Iterable[Row]) -> Iterator[str]:
    """The table."""
    form = "{:12} {:>9} {:>9} {:>8}  {}"
    yield form.format("CAUSE", "PROVOKED", "MEASURED", "ERROR %", "VERDICT")
    for row in rows:
        verdict = f"{row.verdict}: {row.reason}" if row.reason else str(row.verdict)
        error = "-" if row.error is None else f"{100 * row.error:+.2f}"
        yield form.format(row.cause, _time(row.provoked), _time(row.measured), error, verdict)


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)
