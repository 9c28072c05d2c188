"""
The doctor: what this machine is, what on it lengthens tails or misleads, and which remedies can
work here. A screen of text for people, a dictionary for programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from tracer.errors import UsageError
from tracer.host.facts import Fact, Unknown, format_cpus, value_of
from tracer.host.machine import Machine, Workload
from tracer.judge.deceptions import deceptions
from tracer.judge.effects import Effect
from tracer.judge.finding_lines import finding_lines, wrapped
from tracer.judge.findings import Finding, Weight
from tracer.judge.hindrances import budget_in_words, enforced_budget, hindrances
from tracer.judge.remedies import Remedy, in_words, remedies
from tracer.judge.stalls import findings as stall_findings
from tracer.judge.tiers import Ranking, rank_tails
from tracer.judge.tiers import verdict as verdict_on
from tracer.judge.words import count
from tracer.ledger.summary import Summary

HEIGHT = 40


@dataclass(frozen=True, slots=True)
class Diagnosis:
    machine: Machine
    workloads: tuple[Workload, ...]
    """The processes that were looked at besides the machine."""

    findings: tuple[Finding, ...]
    """Most important first: what was measured before what may be."""

    remedies: tuple[Remedy, ...]
    ranking: Ranking | None = None
    """Of the tail that the remedies are for."""

    @property
    def misleading(self) -> bool:
        """Whether measurements of this machine mean something else than they seem to."""
        return any(finding.weight is Weight.MISLEADS for finding in self.findings)


def examine(
    proc: Path = Path("/proc"),
    sys: Path = Path("/sys"),
    pids: Sequence[int] = (),
    measured: Summary | None = None,
) -> Diagnosis:
    """
    Look at the machine below ``proc`` and ``sys``, and at these processes on it.

    :param measured: on this machine: the remedies are for the tail that took most time, and stalls
        are findings
    :raises UsageError: there is no such process
    """
    if gone := next((pid for pid in pids if not (proc / str(pid)).is_dir()), None):
        raise UsageError(f"no process {gone} in {proc}: give the pid of one that runs")
    machine = Machine.read(proc, sys)
    workloads = tuple(Workload.read(pid, proc, sys) for pid in pids)
    found = [*deceptions(machine), *hindrances(machine, workloads)]
    seen = stall_findings(measured) if measured else ()
    tails = rank_tails(measured) if measured else []
    ranking = tails[0][1] if tails else None
    return Diagnosis(
        machine,
        workloads,
        (*seen, *sorted(found, key=lambda finding: -finding.weight)),
        tuple(remedies(machine, workloads, ranking, measured.stalls if measured else ())),
        ranking,
    )


def as_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """For JSON. A fact is ``{"value", "source"}``, or ``{"reason"}`` when it is not known."""
    content: dict[str, Any] = _plain(diagnosis)
    return {"misleading": diagnosis.misleading} | content


def as_lines(diagnosis: Diagnosis, full: bool = False) -> list[str]:
    """Of at most WIDTH columns; at most HEIGHT lines unless ``full``."""
    head = list(_head(diagnosis))
    findings = [finding_lines(finding, brief=not full) for finding in diagnosis.findings] or [
        ["no findings"]
    ]
    tail = ["", *_remedies(diagnosis, full)]
    if full:
        return [*head, *_flat(findings), *tail, "", *_unknown(diagnosis)]
    room = HEIGHT - len(head) - len(tail) - 1
    shown = [block for i, block in enumerate(findings) if len(_flat(findings[: i + 1])) <= room]
    hidden = len(findings) - len(shown)
    more = [f"   {count(hidden, 'more finding')}, and details: --full"] if hidden else []
    return [*head, *_flat(shown), *more, *tail]


def _head(diagnosis: Diagnosis) -> Iterator[str]:
    misleading = sum(finding.weight is Weight.MISLEADS for finding in diagnosis.findings)
    verdict = (
        f"measurements of this machine mislead: {count(misleading, 'finding')} marked !!"
        if misleading
        else "nothing here makes measurements misleading"
    )
    yield f"tailtrace: {verdict}"
    yield from wrapped("machine  ", "; ".join(_machine(diagnosis.machine)))
    yield from wrapped("limits   ", "; ".join(_limits(diagnosis.machine)))
    if tail := diagnosis.ranking:
        yield from wrapped("tail     ", f"{tail.tenant} {tail.step}: {verdict_on(tail)}")
    yield ""


def _machine(machine: Machine) -> Iterator[str]:
    virtual = value_of(machine.hypervisor.virtual)
    if virtual:
        yield f"virtual, {value_of(machine.hypervisor.vendor) or 'hypervisor not known'}"
    else:
        yield "bare metal" if virtual is False else "virtual or not: unknown"
    yield value_of(machine.processor.name) or "processor unnamed"
    yield _shape(machine)
    memory = [value_of(node.memory_bytes) for node in value_of(machine.topology.nodes) or ()]
    if memory and all(each is not None for each in memory):
        yield f"{sum(filter(None, memory)) / 2**30:,.0f} GiB"
    yield f"clock {value_of(machine.hypervisor.clock) or 'unknown'}"
    steal = value_of(machine.hypervisor.steal_clock)
    yield f"steal clock {'unknown' if steal is None else 'live' if steal else 'none'}"


def _shape(machine: Machine) -> str:
    topology = machine.topology
    sockets, nodes = value_of(topology.sockets), value_of(topology.nodes)
    per_socket, per_core = value_of(topology.cores_per_socket), value_of(topology.threads_per_core)
    parts = [
        _number(len(sockets) if sockets else None, "socket"),
        _number(per_socket, "core"),
        _number(per_core, "thread"),
    ]
    shown = _number(len(nodes) if nodes else None, "NUMA node")
    return f"{count(machine.cpu_count, 'CPU')} = {' x '.join(parts)}, {shown}"


def _number(number: int | None, noun: str) -> str:
    return count(number, noun) if number else f"? {noun}s"


def _limits(machine: Machine) -> Iterator[str]:
    settings = machine.settings
    budget = enforced_budget(machine)
    yield f"real-time {'unknown' if isinstance(budget, Unknown) else budget_in_words(budget.value)}"
    yield count(len(machine.realtime_threads), "real-time thread")
    yield f"isolated CPUs {_cpus(settings.isolated)}, nohz_full {_cpus(settings.nohz_full)}"
    yield f"NUMA balancing {_or_unknown(settings.numa_balancing)}"
    yield f"huge pages {_or_unknown(settings.huge_pages)}"
    yield f"CPU pressure {_or_unknown(settings.cpu_pressure)} %"


def _cpus(fact: Fact[frozenset[int]]) -> str:
    return "unknown" if isinstance(fact, Unknown) else format_cpus(fact.value)


def _or_unknown(fact: Fact[object]) -> str:
    return "unknown" if isinstance(fact, Unknown) else str(fact.value)


def _remedies(diagnosis: Diagnosis, full: bool) -> Iterator[str]:
    """Why nothing is known of one is a detail."""
    yield "remedies on this machine"
    unknown = [each.name for each in diagnosis.remedies if each.effect is Effect.UNKNOWN]
    for effect, text in in_words(diagnosis.remedies):
        if full or effect is not Effect.UNKNOWN:
            yield from wrapped(f"{effect:11}  ", text)
    if unknown and not full:
        yield from wrapped(f"{Effect.UNKNOWN:11}  ", f"{', '.join(unknown)} (why: --full)")


def _unknown(diagnosis: Diagnosis) -> Iterator[str]:
    yield "not known here"
    for where, fact in _facts("", diagnosis):
        if isinstance(fact, Unknown):
            yield from wrapped(f"   {where}: ", fact.reason)


def _facts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What was asked, with its place: ``machine.settings.isolated``."""
    if isinstance(value, Unknown):
        yield path, value
    elif is_dataclass(value):
        for field in fields(value):
            if field.name not in ("findings", "remedies", "ranking"):
                name = f"{path}.{field.name}" if path else field.name
                yield from _facts(name, getattr(value, field.name))
    elif isinstance(value, tuple):
        for i, each in enumerate(value):
            yield from _facts(f"{path}[{i}]", each)


def _flat(blocks: Sequence[Sequence[str]]) -> list[str]:
    return [line for block in blocks for line in block]


def _plain(value: Any) -> Any:
    """Dataclasses as dictionaries, sets of CPUs as ``0-3,8``, weights by name."""
    if isinstance(value, Weight):
        return value.name.lower()
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, frozenset):
        numbers = all(isinstance(each, int) for each in value)
        return format_cpus(value) if numbers else sorted(value)
    if isinstance(value, Mapping):
        return [{"key": _plain(key), "value": _plain(each)} for key, each in value.items()]
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value
