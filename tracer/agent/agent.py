"""
The agent: follows targets, drains both sides, and adds up what they say.

One thread does all of it. The rings are read several times a second, so that a burst finds room;
marks have a ring for each thread, of which only those that fill up are. Once a second everything is
read and joined, in a few hundred numpy calls, whatever the number of switches: half a millisecond,
and 3 us for each step. Only the list of processes is walked in Python.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from tracer import catalog
from tracer.agent.about import recorded_machine
from tracer.agent.answers import of_doctor, of_memory
from tracer.agent.expiry import Expiry
from tracer.agent.kernel_side import capabilities, kernel_side
from tracer.agent.memory import Memory
from tracer.agent.naming import RunnerNames
from tracer.agent.own import by_name, machine_families, own_families
from tracer.agent.pages import Pages
from tracer.agent.touches import Touches
from tracer.config import Config
from tracer.host.machine import Machine
from tracer.kernel.btf import wire
from tracer.kernel.trace import KernelTrace
from tracer.ledger.costop import CoStops
from tracer.ledger.families import families
from tracer.ledger.join import Join
from tracer.ledger.labels import Labels
from tracer.ledger.summarise import summarise
from tracer.ledger.summary import Summary
from tracer.ledger.totals import Totals
from tracer.model import Capability, Family, Names, Records, Steps, Target, join_records, take_rows
from tracer.record.increments import Increments
from tracer.record.meta import MachineKind, Meta
from tracer.record.window import Answer, Window
from tracer.targets.cgroups import Cgroups
from tracer.targets.pod_watch import PodWatch
from tracer.targets.processes import Processes

SECOND = 1_000_000_000
_HURRY = 0.25  # of a ring: fuller than this, the next reading comes four times as soon
_MOST_READ = 8192  # records: with more of them read, they are joined before the second is over
_VERSION = version("tailtrace")
_STEP = wire().enum("stepmark_what")["STEPMARK_STEP"]


class Agent:
    """
    A context manager: the kernel side is attached inside of it.

    Raises UnavailableError where this kernel or the privileges do not allow that.
    """

    def __init__(
        self,
        config: Config,
        observe: Callable[[Steps], None] | None = None,
        observe_outliers: Callable[[Records, NDArray[np.int32]], None] | None = None,
        kernel: KernelTrace | None = None,
    ) -> None:
        """
        :param observe: is given all steps as they are closed, besides the totals
        :param observe_outliers: the same of single long deschedules, and whose they were
        :param kernel: that of this configuration, where it is being loaded already
        """
        self._config = config
        self._observe, self._observe_outliers = observe, observe_outliers
        self._here = Machine.read()
        self._kernel = kernel or kernel_side(config, self._here)
        self._slots = Labels(config.tenants.max)
        self._pods = PodWatch(config.kubelet)
        self._processes = Processes(config, pods=self._pods)
        self._machine = recorded_machine(self._here)
        self._expiry = Expiry()
        self._undo = ExitStack()
        self._drain_seconds = 0.0
        self._examined: dict[str, Answer] = {}

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        return capabilities(self._planned(), self.memory.capability, self._pods.capabilities)

    def _planned(self) -> Iterator[Capability]:
        """A steal clock that had told of nothing at the start may do so since."""
        is_told = "steal" not in self._totals.cannot_tell
        for each in self._kernel.plan.capabilities:
            seen = each.name == "steal" and is_told
            yield Capability("steal", self._kernel.plan.steal_source) if seen else each

    @property
    def names(self) -> Names:
        """What the kinds and tenants of steps are numbers of."""
        return self._pages.names

    @property
    def totals(self) -> Totals:
        """What everything adds up to."""
        return self._totals

    @property
    def targets(self) -> list[Target]:
        return list(self._pages.targets.values())

    def __enter__(self) -> Agent:
        self._undo.enter_context(self._kernel)
        self.memory = Memory.here(
            self._config, self._here, self._config.window_seconds, Touches(self._kernel)
        )
        self._undo.enter_context(self._pods)
        self._pages = Pages(self._kernel, self._slots)
        self._totals = Totals(
            self._pages.names,
            RunnerNames(self._pages.target_of, Cgroups(find_pod=self._pods.find)),
            time.monotonic_ns(),
            cannot_tell=self._cannot_tell(),
            window_seconds=self._config.window_seconds,
            max_tenants=self._config.tenants.max,
            bare_metal=self._machine.kind is MachineKind.BARE_METAL,
            unix_offset_ns=time.time_ns() - time.monotonic_ns(),
        )
        self._co_stops = CoStops(self._machine.cpus, self._totals.started_ns)
        self._join = Join(self._pages.page_names, self._totals.lost)
        self._increments = Increments(self._totals, {}, self._totals.started_ns)
        self._read: list[tuple[Records, Records, Records]] = []
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def _cannot_tell(self) -> dict[str, str]:
        figures = {cause.name for cause in catalog.CAUSES}
        figures |= {event.capability for event in catalog.EVENTS}
        return {
            each.name: each.reason
            for each in self._kernel.plan.capabilities
            if each.name in figures and not each.available
        }

    def run(self, stopped: Callable[[], bool], every_second: Callable[[], None]) -> None:
        """Trace until ``stopped``, asked at every reading; ``every_second`` may publish."""
        next_second = 0
        while not stopped():
            now = time.monotonic_ns()
            fill = self.read(urgent=now < next_second)
            if now >= next_second:
                self.follow()
                self.memory.tick(self.targets)
                self._totals.add_deschedules(self._slots.names, self._kernel.histograms, now)
                every_second()
                next_second = now + SECOND
            elif sum(len(records) for batch in self._read for records in batch) > _MOST_READ:
                self.read()
                self.join()
            time.sleep(self._config.drain_ms / 1e3 / (4 if fill > _HURRY else 1))
        self.read()
        self.join(last=True)

    def follow(self) -> None:
        """Look for new processes and those that are gone, and join what was read before that."""
        changes = self._processes.scan()
        if changes.gone:
            self.read()
        self.join(gone=changes.gone)
        self._pages.follow(changes)

    def read(self, urgent: bool = False) -> float:
        """
        Take what both sides have. Returns how full the fullest ring was, 0 to 1.

        :param urgent: of marks only what its ring would not hold for long
        """
        began = time.perf_counter()
        fill = self._kernel.fill
        marks = self._pages.finished(urgent)
        self._read.append((marks, self._kernel.pieces(), self._kernel.outliers()))
        self._add_stalls()
        self._drain_seconds += time.perf_counter() - began
        return max(fill, self._pages.fill(marks))

    def _add_stalls(self, last: bool = False) -> None:
        stalls, now = self._kernel.stalls(), time.monotonic_ns()
        whose = zip(self._pages.page_names.tenants_of(stalls), stalls["process"], strict=True)
        tenants = [self.names.tenants[tenant] if process else "" for tenant, process in whose]
        self._totals.stalls.add(self._co_stops.add(stalls, tenants, now, last), now)

    def join(self, gone: list[Target] | None = None, last: bool = False) -> None:
        """
        Join and add up what was read.

        :param gone: targets that have ended: all of theirs is closed now
        :param last: so is all of everybody's
        """
        began = time.perf_counter()
        ended = [target.index for target in gone or ()]
        self._pages.forget(gone or [])
        if last:
            ended = list(self._pages.targets)
            self._add_stalls(last)
        if self._read:
            marks, pieces, outliers = map(join_records, zip(*self._read, strict=True))
            self._read.clear()
            self._add(marks, pieces, ended)
            self._add_outliers(outliers)
        self._drain_seconds += time.perf_counter() - began

    def _add(self, marks: Records, pieces: Records, ended: list[int]) -> None:
        now = time.monotonic_ns()
        is_step = marks["what"] == _STEP
        queued = take_rows(marks, ~is_step)
        closed = self._join.drain(take_rows(marks, is_step), pieces, now, ended)
        self._totals.add_steps(closed.steps, now)
        if self._observe:
            self._observe(closed.steps)
        self._totals.add_outside(closed.outside, closed.outside_tenant)
        if len(queued):
            tenant = np.where(queued["nr_shares"] > 0, queued["shares"]["tenant"][:, 0], 0)
            self._totals.add_queue_waits(
                self._pages.page_names.tenants[queued["target"], tenant],
                (queued["end_ns"] - queued["begin_ns"]).astype(np.int64),
            )

    def _add_outliers(self, outliers: Records) -> None:
        tenants = self._pages.page_names.tenants_of(outliers)
        self._totals.longest.add(outliers, tenants)
        if self._observe_outliers:
            self._observe_outliers(outliers, tenants)

    def losses(self) -> Counter[str]:
        """What was not counted, by reason, since the start: of all parts together."""
        return (
            self._totals.lost
            + Counter(self._kernel.lost())
            + self._pages.losses
            + Counter(self._processes.losses)
            + Counter(self._pods.losses)
        )

    def families(self) -> list[Family]:
        """Everything that is exported, as of now."""
        return self._expiry.living(self._families(), time.monotonic())

    def _families(self) -> Iterator[Family]:
        yield from families(self._totals, time.monotonic_ns(), time.time())
        losses = self.losses()
        yield by_name(catalog.LOST, {loss.name: losses[loss.name] for loss in catalog.LOSSES})
        yield by_name(catalog.TARGETS, Counter(target.tenant for target in self.targets))
        yield from self.memory.families()
        yield from machine_families(self._machine, _VERSION, self.capabilities, self._kernel.pulses)
        yield from own_families(self._drain_seconds, self._kernel.run_times())

    def summary(self) -> Summary:
        return summarise(self._totals, self.losses(), time.monotonic_ns())

    def window(self) -> Window:
        """What there is to record since the last call."""
        return self._window(time.monotonic_ns(), self.losses())

    def last_window(self) -> tuple[Window, Summary]:
        """The same, and the summary of all as of its end."""
        now, losses = time.monotonic_ns(), self.losses()
        return self._window(now, losses), summarise(self._totals, losses, now)

    def _window(self, now_ns: int, losses: Counter[str]) -> Window:
        self._totals.add_deschedules(self._slots.names, self._kernel.histograms, now_ns)
        return self._increments.take(losses, now_ns, time.time_ns(), self._answers())

    def _answers(self) -> dict[str, Answer]:
        """The machine is examined once: it does not change as its memory does."""
        self._examined = self._examined or of_doctor([t.pid for t in self.targets])
        return self._examined | of_memory(self.memory)

    def meta(self, configuration: str) -> Meta:
        """What a recording says about itself; ``configuration`` is the text of the file."""
        started_ns = self._totals.started_ns
        return Meta(
            agent_version=_VERSION,
            machine=self._machine,
            configuration=configuration,
            capabilities=self.capabilities,
            cannot_tell=dict(self._totals.cannot_tell),
            window_seconds=self._config.window_seconds,
            max_tenants=self._config.tenants.max,
            started_ns=started_ns,
            started_unix_ns=started_ns + self._totals.unix_offset_ns,
        )
