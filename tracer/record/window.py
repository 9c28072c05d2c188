"""What a recording holds, as plain data: what totals gained in about ten seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tracer.ledger.profile import Profile
from tracer.model import Stall

WINDOW_SECONDS = 10

DOCTOR, DOCTOR_FULL, MEMORY, REPORT_MEMORY = "doctor", "doctor --full", "memory", "report: memory"
"""Commands whose answers are recorded, and what the report says of memory."""

Unsigned = Annotated[int, msgspec.Meta(ge=0)]
Unsigned32 = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]


class Runner(msgspec.Struct, frozen=True, kw_only=True):
    """A thread that ran while another wanted the CPU."""

    name: str = ""
    """Under which it is blamed; empty where nobody is."""

    cgroup_id: Unsigned
    tgid: Unsigned32
    tid: Unsigned32
    comm: str


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """A deschedule."""

    ns: int
    at_ns: int
    """When it ended."""

    cause: str
    syscall: int
    by: Runner


class RecordedOutlier(msgspec.Struct, frozen=True, kw_only=True):
    """A single long deschedule. The fields are those of ``struct outlier``."""

    tenant: str
    target: Unsigned32
    pid: Unsigned32
    tid: Unsigned32
    cpu: Unsigned32
    """On which the thread got its turn."""

    step: Unsigned
    """0 outside of steps."""

    wait: Wait


class RecordedStep(msgspec.Struct, frozen=True, kw_only=True):
    """One slow step, whole. The fields are those of ``tracer.model.Steps``."""

    target: Unsigned32
    tid: Unsigned32
    slot: Unsigned32
    number: Unsigned
    parent: Unsigned
    kind: str
    shares: Annotated[tuple[tuple[str, float], ...], msgspec.Meta(min_length=1, max_length=8)]
    """Tenants and their shares."""

    begin_ns: int
    end_ns: int
    ns: dict[str, int]
    """By cause, those with any."""

    switches: Unsigned32
    involuntary: Unsigned32
    migrations: Unsigned32
    helper_wait_ns: int
    helper_worst_ns: int
    worst: Wait | None
    aggressors: Annotated[tuple[tuple[Runner, Unsigned], ...], msgspec.Meta(max_length=6)]
    """With the ns that each ran, largest first."""

    blame_rest_ns: int
    events: dict[str, Unsigned]
    """Those with any."""


class Answer(msgspec.Struct, frozen=True):
    """What a command said of the machine."""

    value: dict[str, Any] | None
    """Its JSON; None where it had nothing to say."""

    lines: tuple[str, ...]
    exit_code: Annotated[int, msgspec.Meta(ge=0, le=255)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSums:
    """Steps of a kind that served a tenant."""

    is_stage: bool
    profile: Profile
    """Whole ledgers by wall time; of one row, so that a cell is a bucket."""

    seconds: NDArray[np.float64]
    """(c,) the tenant's share, by cause."""

    helper_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Times are CLOCK_MONOTONIC; c causes in the order of the catalog."""

    started_ns: int
    ended_ns: int
    unix_ns: int
    """The wall clock when the window ended."""

    steps: int
    """Without stages."""

    by_step: Mapping[tuple[str, str], StepSums]
    """By tenant and step kind."""

    queue_waits: Mapping[str, Profile]
    """By tenant; of one row and one column."""

    deschedules: Mapping[str, NDArray[np.int64]]
    """By tenant: (totals.DESCHEDULES, buckets and then the sum in ns)."""

    outside: Mapping[str, NDArray[np.float64]]
    """By tenant: (c,) seconds of threads in no step."""

    blame: Mapping[tuple[str, str, str], float]
    """Seconds by victim, aggressor and cause."""

    events: Mapping[tuple[str, str, str], float]
    """Counts by tenant, step kind and event; outside of steps the kind is empty."""

    slowest: Sequence[RecordedStep]
    """Of the slowest steps those that no window before has."""

    outliers: Sequence[RecordedOutlier]
    """The longest deschedules, oldest first."""

    answers: Mapping[str, Answer]
    """By command, where the answer is not that of the window before."""

    stalls: Sequence[Stall]
    """That ended, in order."""

    lost: Mapping[str, int]

    @property
    def seconds(self) -> float:
        return (self.ended_ns - self.started_ns) / 1e9
