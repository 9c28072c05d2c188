"""What the agent tells of memory: nothing where nodes mean nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tracer import catalog
from tracer.agent.own import by_name
from tracer.agent.touches import Touches
from tracer.config import Config
from tracer.host.facts import Known, value_of
from tracer.host.machine import Machine
from tracer.judge import locality
from tracer.judge.placement import NOT_TRACED, Placement, judge, mismatch_by_tenant
from tracer.ledger.labels import Labels
from tracer.memory.syscalls import why_not
from tracer.memory.watch import PACE, Watch
from tracer.model import Capability, Family, Target

PRIVATE = "private"
"""The segment that is no segment: memory of one process alone."""


class Memory:
    """Watches the targets' memory, and keeps what the last window told."""

    @classmethod
    def here(
        cls,
        config: Config,
        machine: Machine,
        window_seconds: float,
        touches: Touches | None = None,
        pace: int = PACE,
    ) -> Memory:
        """
        :param touches: who touches segments first, where that is traced
        :param pace: how many times longer than its looks it rests
        """
        nodes = value_of(machine.topology.nodes) or ()
        watch = Watch(nodes, window_seconds, config.memory.max_segments, pace=pace)
        return cls(config, locality.placement(machine, why_not()), watch, touches)

    def __init__(
        self, config: Config, capability: Capability, watch: Watch, touches: Touches | None = None
    ) -> None:
        self.capability = capability
        self.placement: Placement | None = None
        """Of the last window; None before its end, and where it cannot be told."""

        self._expected = config.memory.expected
        self._tenants = Labels(config.tenants.max)
        self._watch, self._touches = watch, touches

    def tick(self, targets: Sequence[Target]) -> Placement | None:
        """Do what is due. Returns what a window told when it ends."""
        state = self._watch.tick(targets) if self.capability.available else None
        if state is None:
            return None
        first = NOT_TRACED
        if self._touches:
            segments = {segment.identity for segment in state.segments}
            first = self._touches.seen(segments, {target.pid for target in targets})
        self.placement = judge(state, self._expected, first)
        return self.placement

    def families(self) -> Iterator[Family]:
        if self.placement:
            yield from self._of_nodes(self.placement)
            yield self._pages(self.placement)
            yield self._mismatch(self.placement)
        yield Family(catalog.SELF_PLACEMENT, {(): self._watch.busy_seconds})

    def _of_nodes(self, placement: Placement) -> Iterator[Family]:
        counts = value_of(placement.state.numastat) or {}
        yield Family(
            catalog.NUMASTAT_PAGES,
            {
                (str(node), counter): float(getattr(each, counter))
                for node, each in counts.items()
                for counter in each.__slots__
            },
        )
        changes = {node: drift.remote.change for node, drift in placement.state.drift.items()}
        yield Family(
            catalog.NUMASTAT_DRIFT,
            {
                (str(node),): change.value
                for node, change in changes.items()
                if isinstance(change, Known)
            },
        )

    def _pages(self, placement: Placement) -> Family:
        rows: Counter[tuple[str, str, str]] = Counter()
        for each in placement.targets:
            tenant = self._label(each.seen.target.tenant)
            private = value_of(each.private)
            for node, pages in (private.by_node if private else {}).items():
                rows[tenant, PRIVATE, str(node)] += pages
        for segment in placement.segments:
            for tenant in {self._label(name) for name in segment.tenants}:
                for node, pages in segment.segment.pages.by_node.items():
                    rows[tenant, segment.name, str(node)] += pages
        return Family(catalog.PLACEMENT_PAGES, {row: float(n) for row, n in rows.items()})

    def _mismatch(self, placement: Placement) -> Family:
        return by_name(
            catalog.PLACEMENT_MISMATCH, mismatch_by_tenant(placement.targets, self._label)
        )

    def _label(self, tenant: str) -> str:
        return self._tenants.names[self._tenants.number(tenant)]
