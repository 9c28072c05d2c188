"""
What a migration must have done, from a YAML file or by default.

Every key, its default and its range: ``docs/verdict.md``.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from tracer import typed_yaml
from tracer.judge.migration.figures import FIGURES, Of
from tracer.typed_yaml import require


class Criterion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Limits of one figure; all that are given must hold."""

    figure: str
    at_most: float | None = None
    """After; seconds for times."""

    at_least: float | None = None
    max_ratio: float | None = None
    """After over before."""

    min_ratio: float | None = None
    tenant: str = ""
    """Only this one's; each one's when not given."""

    step: str = ""
    """Only this kind, stages too; each kind's, without stages, when not given."""

    where_told: bool = False
    """Left out where nothing is told of the figure after the migration; else that is no pass."""

    def __post_init__(self) -> None:
        require(self.figure in FIGURES, "figure", self.figure, f"one of {', '.join(FIGURES)}")
        limits = {limit: getattr(self, limit) for limit in LIMITS}
        given = {limit: value for limit, value in limits.items() if value is not None}
        if not given:
            raise ValueError(f"{', '.join(LIMITS)} are all missing, give at least one")
        for limit, value in given.items():
            none = limit == "at_most" and value == 0
            require(none or 0 < value < 1e12, limit, value, "above 0")
        for least, most in (("at_least", "at_most"), ("min_ratio", "max_ratio")):
            if least in given and most in given:
                allowed = f"no more than {most}, {given[most]:g}"
                require(given[least] <= given[most], least, given[least], allowed)
        of = FIGURES[self.figure].of
        require(not self.tenant or of is not Of.MACHINE, "tenant", self.tenant, "left out here")
        require(not self.step or of is Of.PAIR, "step", self.step, "left out here")

    @property
    def compares(self) -> bool:
        """Whether what was before matters."""
        return self.max_ratio is not None or self.min_ratio is not None


LIMITS = ("at_most", "at_least", "max_ratio", "min_ratio")

_DEFAULTS = (
    Criterion(figure="deschedule_p999", at_most=0.001),
    Criterion(figure="step_p999_p50", at_most=2.0, max_ratio=1.25),
    Criterion(figure="step_p50", max_ratio=1.05),
    Criterion(figure="steps_per_second", min_ratio=0.95),
    Criterion(figure="misplaced_segments", at_most=0, where_told=True),
)

_STEP_MEAN = Criterion(figure="step_mean", max_ratio=1.05)
FLEET_DEFAULTS = tuple(_STEP_MEAN if c.figure == "step_p50" else c for c in _DEFAULTS)
"""The mean is exact, where buckets are too wide for a median."""


class Criteria(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole file. ``Criteria()`` has every default."""

    criteria: tuple[Criterion, ...] = ()
    """In place of the default about the same figure, or besides."""

    defaults: bool = True
    """Whether the default criteria hold, too."""

    confidence: float = 0.995
    """Of the intervals that must lie on one side of a limit. Those shown are of 95 %."""

    min_share: float = 0.05
    """Of the time of steps: kinds with less are judged only by criteria that name them."""

    max_mix_change: float = 0.1
    """The part of the steps that may be of another tenant or kind after than before."""

    max_rate_change: float = 2.0
    """By what factor all steps per second may differ, either way."""

    max_loss: float = 1e-3
    """Falsifying losses per step; as many as the alert about losses bears."""

    def __post_init__(self) -> None:
        require(self.defaults or len(self.criteria) > 0, "defaults", False, "true without criteria")
        require(len(self.criteria) <= 100, "criteria", self.criteria, "100 at most")
        require(0.9 <= self.confidence <= 0.9999, "confidence", self.confidence, "0.9 to 0.9999")
        require(0 <= self.min_share <= 1, "min_share", self.min_share, "0 to 1")
        require(0 < self.max_mix_change <= 1, "max_mix_change", self.max_mix_change, "0 to 1")
        require(1 < self.max_rate_change <= 1e6, "max_rate_change", self.max_rate_change, "above 1")
        require(0 <= self.max_loss <= 1, "max_loss", self.max_loss, "0 to 1")

    @property
    def all(self) -> tuple[Criterion, ...]:
        given = {criterion.figure for criterion in self.criteria}
        kept = [c for c in _DEFAULTS if self.defaults and c.figure not in given]
        return (*kept, *self.criteria)


def load(path: Path) -> Criteria:
    return typed_yaml.load(path, Criteria)
