"""
What a report says about a period, as plain data. All times are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tracer.ledger.stalls import StallRow
from tracer.model import Aggressor, Stall

ByCause = Mapping[str, float]
ByEvent = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """What both of the following say of steps of a kind that served a tenant."""

    tenant: str
    step: str
    is_stage: bool
    count: int
    p50: float
    p99: float
    p999: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow(_Row):
    """All steps of a kind that served a tenant."""

    seconds: ByCause
    """The tenant's share of all steps."""

    typical: ByCause
    """A step between the 40th and the 60th percentile of wall time, on average."""

    tail: ByCause
    """A step beyond the 99th percentile, on average; of fewer than 100 steps the longest."""

    tail_count: int
    events: ByEvent = field(default_factory=dict)
    """Counts, the tenant's share of all steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentRow(_Row):
    """The steps of a kind that served a tenant in the window."""

    seconds: ByCause
    """Of whole steps, whoever else they served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameRow:
    victim: str
    aggressor: str
    cause: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LongestWait:
    """The longest deschedule of a step."""

    cause: str
    seconds: float
    after: float
    """When it ended, in seconds from the step's begin."""

    comm: str
    """Of the thread that had the CPU then; empty where nobody is known."""

    tid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStep:
    """One step, to be explained against the typical one of its tenant and kind."""

    number: int
    parent: int
    """The step that a stage belongs to; 0 for a step."""

    step: str
    tenant: str
    """The one with the largest share."""

    shares: Mapping[str, float]
    """Of all tenants that it served."""

    target: int
    tid: int
    end_ns: int
    elapsed: float
    seconds: ByCause
    median: float
    typical: ByCause
    switches: int
    """Times that the thread left the CPU."""

    involuntary: int
    """Of these, wanting to stay."""

    migrations: int
    worst: LongestWait | None
    aggressors: tuple[Aggressor, ...]
    blame_rest: float
    helper_wait: float
    helper_worst: float
    events: ByEvent = field(default_factory=dict)
    usual_events: ByEvent = field(default_factory=dict)
    """What the steps of its tenant and kind have of them in as much time as a median one takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    seconds: float
    window_seconds: int
    """Recent rows and the slowest steps are those of this last part."""

    steps: int
    """Without stages."""

    rows: tuple[StepRow, ...]
    """Most time first."""

    recent: tuple[RecentRow, ...]
    """Most time first."""

    blame: tuple[BlameRow, ...]
    """Most time first."""

    slowest: tuple[SlowStep, ...]
    """Slowest first; steps and stages."""

    stalls: tuple[StallRow, ...]
    """By scope, most time first."""

    longest_stalls: tuple[Stall, ...]
    """Longest first."""

    outside: Mapping[str, ByCause]
    """By tenant: what kernel events told of threads in no step."""

    lost: Mapping[str, int]
    cannot_tell: Mapping[str, str]
    """Causes and capabilities behind events that are not told here, each with the reason."""

    unix_offset_ns: int
    """What the wall clock showed more than CLOCK_MONOTONIC, when tracing began."""

    bare_metal: bool
    """Known to have no hypervisor."""
