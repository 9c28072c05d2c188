"""Single long deschedules as they are recorded, by name, and back into ``struct outlier``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tracer.kernel.btf import wire
from tracer.model import Names, Records
from tracer.record.slow_steps import number_of, wait_of, wait_record
from tracer.record.window import RecordedOutlier

_OUTLIER = wire().dtype("outlier")
_PLAIN = {"process": "target", "tgid": "pid", "tid": "tid", "cpu": "cpu", "step": "step"}
"""Fields of ``struct outlier`` that are recorded as they are, and under which name."""


def recorded(
    outliers: Records, tenant: NDArray[np.int32], names: Names
) -> Sequence[RecordedOutlier]:
    """``tenant`` (n,) is whose they were, as an index into ``names.tenants``."""
    return [
        RecordedOutlier(
            **{name: int(outlier[field]) for field, name in _PLAIN.items()},
            tenant=names.tenants[of],
            wait=wait_of(outlier["wait"]),
        )
        for outlier, of in zip(outliers, tenant.tolist(), strict=True)
    ]


def restored(
    recorded: Sequence[RecordedOutlier], names: Names
) -> tuple[Records, NDArray[np.int32]]:
    """The reverse. ``names`` grows by what is missing."""
    outliers = np.zeros(len(recorded), _OUTLIER)
    for field, name in _PLAIN.items():
        outliers[field] = [getattr(outlier, name) for outlier in recorded]
    for at, outlier in enumerate(recorded):
        outliers["wait"][at] = wait_record(outlier.wait)
    tenants = [number_of(names.tenants, outlier.tenant) for outlier in recorded]
    return outliers, np.array(tenants, np.int32)
