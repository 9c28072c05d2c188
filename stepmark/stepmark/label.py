"""What a mark says - kind and shares - packed once, so that writing it is a copy."""

from __future__ import annotations

from stepmark import page as layout
from stepmark.shares import NOBODY, Shares


class Label:
    """A step kind and whom it serves, by ids."""

    __slots__ = ("_shares", "_stages", "dropped", "inherits", "kind", "tail", "tenant", "ticks")

    def __init__(self, kind: int, shares: Shares | None, ticks: bool = False) -> None:
        self.kind = kind
        self.inherits = shares is None
        self.ticks = ticks
        self._shares = shares = shares or NOBODY
        self.tenant = shares.largest
        self.dropped = shares.dropped
        self.tail = layout.DONE_TAIL.pack(layout.STEP, kind, shares.number, shares.packed)
        self._stages: dict[int, Label] = {}

    def stage(self, kind: int) -> Label:
        """A stage that serves the same tenants as this."""
        known = self._stages.get(kind)
        if known is None:
            known = self._stages[kind] = Label(kind, self._shares)
        return known


NO_STEP = Label(0, NOBODY)
