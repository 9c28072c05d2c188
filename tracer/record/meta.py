"""What a recording says about where, by what and how it was made."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from tracer.catalog import CAUSES, DESCHEDULES
from tracer.model import Capability

Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class MachineKind(StrEnum):
    VIRTUAL = "virtual"
    BARE_METAL = "bare metal"
    UNKNOWN = "unknown"


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    kind: MachineKind
    kernel: str
    """Release."""

    cpu_model: str
    cpus: int
    numa_nodes: int | None
    """That this machine shows; None where it does not say."""


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table ``meta`` per field, its value in JSON."""

    agent_version: str
    machine: Machine
    configuration: str
    """The text of the configuration file; empty for the defaults."""

    capabilities: tuple[Capability, ...]
    cannot_tell: dict[str, str]
    """Causes that this machine cannot tell, each with the reason."""

    window_seconds: Annotated[int, msgspec.Meta(ge=1, le=3600)]
    max_tenants: Annotated[int, msgspec.Meta(ge=1, le=1000)]
    started_ns: Nanoseconds
    """CLOCK_MONOTONIC, when the wall clock showed ``started_unix_ns``."""

    started_unix_ns: Nanoseconds
    causes: tuple[str, ...] = tuple(cause.name for cause in CAUSES)
    """The order of columns by cause."""

    deschedules: tuple[str, ...] = DESCHEDULES
    """The order of histograms of deschedules."""
