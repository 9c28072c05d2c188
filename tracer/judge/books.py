"""
The tracer's books held against the kernel's own: two counts of the same events that know nothing of
each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from tracer.catalog import CAUSES, EVENTS, Group
from tracer.host.counters import ThreadCounters
from tracer.judge.words import count, duration
from tracer.model import Records
from tracer.targets.text import visible

PRECISION = 0.01
_WAKEUP_NS = 30_000
"""On an idle CPU the kernel counts a woken thread's wait by a clock that it does not bring up to
date (``rq_clock_skip_update``): a few microseconds each time, 10 to 20 on a virtual CPU, which
leaves the guest to set its timer anew."""

_EDGE = 2
"""Events between a look of the kernel's at a thread and ours."""

_WAITED = "waits for a CPU"
_WAITS = [at for at, cause in enumerate(CAUSES) if cause.group is Group.WANTED]
_MINOR, _MAJOR = ([e.name for e in EVENTS].index(n) for n in ("fault_minor", "fault_major"))


@dataclass(frozen=True, slots=True)
class Entry:
    """One figure of one thread, or of all of them."""

    what: str
    traced: int
    kernel: int
    allowed: int
    """By how much the two may differ."""

    @property
    def agrees(self) -> bool:
        return abs(self.traced - self.kernel) <= self.allowed

    def __add__(self, other: Entry) -> Entry:
        return Entry(
            self.what,
            self.traced + other.traced,
            self.kernel + other.kernel,
            self.allowed + other.allowed,
        )


@dataclass(frozen=True, slots=True)
class ThreadBooks:
    pid: int
    tid: int
    comm: str
    entries: tuple[Entry, ...]


def of_thread(
    pid: int, tid: int, before: ThreadCounters, after: ThreadCounters, pieces: Records
) -> ThreadBooks:
    """``pieces`` (n,) are all of this thread between the two looks at its counters."""
    voluntary = after.voluntary - before.voluntary
    switches, involuntary = int(pieces["switches"].sum()), int(pieces["involuntary"].sum())
    events = pieces["events"].sum(axis=0)
    waited_ns = int(pieces["ns"][:, _WAITS].sum() + pieces["absent_ns"].sum())
    told_ns = after.run_delay_ns - before.run_delay_ns
    allowed_ns = int(PRECISION * told_ns) + _WAKEUP_NS * (voluntary + _EDGE)

    def entry(what: str, traced: int, of: Callable[[ThreadCounters], int]) -> Entry:
        told = of(after) - of(before)
        return Entry(what, traced, told, _EDGE + int(PRECISION * told))

    entries = (
        Entry(_WAITED, waited_ns, told_ns, allowed_ns),
        entry("voluntary switches", switches - involuntary, lambda c: c.voluntary),
        entry("involuntary switches", involuntary, lambda c: c.involuntary),
        entry("minor faults", int(events[_MINOR]), lambda c: c.minor_faults),
        entry("major faults", int(events[_MAJOR]), lambda c: c.major_faults),
    )
    return ThreadBooks(pid, tid, visible(after.comm.encode()), entries)


def totals(books: Sequence[ThreadBooks]) -> list[Entry]:
    """Each figure over all threads."""
    columns = zip(*(thread.entries for thread in books), strict=True)
    return [sum(column[1:], column[0]) for column in columns]


def differing(books: Sequence[ThreadBooks]) -> list[tuple[ThreadBooks, Entry]]:
    """Threads whose two counts of something differ by more than they may, the worst first."""
    found = [(t, entry) for t in books for entry in t.entries if not entry.agrees]
    return sorted(found, key=lambda pair: -_relative(pair[1]))


def as_dict(books: Sequence[ThreadBooks], lost: Mapping[str, int]) -> dict[str, object]:
    return {
        "totals": [asdict(entry) for entry in totals(books)],
        "threads": [asdict(thread) for thread in books],
        "lost": dict(lost),
    }


def as_lines(books: Sequence[ThreadBooks], lost: Mapping[str, int]) -> Iterator[str]:
    yield f"the books of {count(len(books), 'thread')} against the kernel's own counts"
    yield ""
    yield f"{'':22}{'TRACED':>12} {'KERNEL':>12} {'DIFFER BY':>10}"
    for entry in totals(books):
        yield _line(entry.what, entry)
    yield ""
    worst = differing(books)
    yield f"figures of single threads that differ by more than they may: {len(worst)}"
    for thread, entry in worst[:10]:
        yield _line(entry.what, entry) + f"  {thread.comm} {thread.pid}/{thread.tid}"
    if told := ", ".join(f"{reason} {n}" for reason, n in lost.items() if n):
        yield f"lost: {told}"


def _line(what: str, entry: Entry) -> str:
    traced, kernel = (
        duration(n / 1e9) if what == _WAITED else f"{n:,}" for n in (entry.traced, entry.kernel)
    )
    return f"{what:22}{traced:>12} {kernel:>12} {100 * _relative(entry):>8.2f} %"


def _relative(entry: Entry) -> float:
    return abs(entry.traced - entry.kernel) / max(1, entry.kernel)
