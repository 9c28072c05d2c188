"""Who touches shared segments first, as the kernel side counts it while the agent runs."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from tracer.host.facts import Fact, Known, Unknown
from tracer.kernel.btf import wire
from tracer.kernel.trace import KernelTrace
from tracer.memory.areas import Identity
from tracer.memory.first_touch import FirstTouches, first_touches, identities

_MANY = wire().enum("limits")["MAX_TOUCHES"] // 2


class Touches:
    def __init__(self, kernel: KernelTrace) -> None:
        self._kernel = kernel
        (self._told,) = (each for each in kernel.plan.capabilities if each.name == "first touch")

    def seen(self, segments: Collection[Identity], pids: Collection[int]) -> Fact[FirstTouches]:
        """
        Since tracing began. Makes room once it gets scarce: what is neither of these segments nor
        of these processes is forgotten.
        """
        if not self._told.available:
            return Unknown(self._told.reason)
        touches = self._kernel.touches()
        if len(touches) > _MANY:
            mapped = [identity in segments for identity in identities(touches)]
            alive = np.isin(touches["who"]["tgid"], list(pids))
            self._kernel.forget_touches(touches[~(alive | mapped)])
        return Known(first_touches(touches), self._told.source)
