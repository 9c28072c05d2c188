"""
What this kernel tells of a thread's memory: page faults, where its pages come from, what moves.

Figures of places need two places. With one visible NUMA node all memory looks local; that says
nothing, so nothing of the kind is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from tracer.host.facts import value_of
from tracer.host.topology import Cpus, Topology
from tracer.kernel.btf import Btf, wire
from tracer.model import Capability

Refusal = Callable[[str], str]
"""Why a kernel function cannot be traced; empty when it can (``fentry.refusal``)."""

_MAX_CPUS = wire().enum("limits")["MAX_CPUS"]
_ONE_NODE = "one node visible"
_NO_BEGIN = (
    "no event tells when a fault begins: one between a step's last event and its end may be "
    "counted for the step after it"
)


@dataclass(frozen=True, slots=True)
class Hooks:
    """A part of a plan."""

    capabilities: tuple[Capability, ...]
    programs: tuple[str, ...] = ()
    functions: Mapping[str, str] = field(default_factory=dict)
    """Of programs for a function that has not the same name on all kernels."""

    constants: Mapping[str, int | list[int]] = field(default_factory=dict)


def memory_hooks(
    kernel: Btf, refusal: Refusal, topology: Topology, nodes_doubted: str = ""
) -> list[Hooks]:
    """``nodes_doubted`` is why the nodes that this machine shows mean nothing; empty if they do."""
    if len(value_of(topology.nodes) or ()) < 2:
        nodes_doubted = nodes_doubted or _ONE_NODE
    refused = refusal("handle_mm_fault")
    hooks = [_faults(kernel, refused), _moves(topology, nodes_doubted)]
    if not nodes_doubted:
        new_pages = allocations(kernel)
        touched = Hooks((_first_touch(kernel, new_pages, refused),))
        return [*hooks, new_pages, touched, *_balancing(kernel, refusal), _migrations(kernel)]
    names = "allocations", "first touch", "hint faults", "numa_migrate", "page moves", "balancing"
    return [*hooks, Hooks(tuple(Capability(name, "none", nodes_doubted) for name in names))]


def _faults(kernel: Btf, refused: str) -> Hooks:
    """
    The counts are always the task's own. A program at the begin of a fault makes sure that it is
    counted for the step that it is in.

    :param refused: why handle_mm_fault() cannot be traced; empty when it can
    """
    timed = Capability("fault", "none" if refused else "fentry", refused)
    if not refused:
        counted = Capability("fault count", "task+fentry")
        return Hooks((counted, timed), ("on_fault_begin", "on_fault_end"))
    if kernel.tracepoint_arguments("page_fault_user"):
        counted = Capability("fault count", "task+tp_btf")
        return Hooks((counted, timed), ("on_fault_user", "on_fault_kernel"))
    return Hooks((Capability("fault count", "task", _NO_BEGIN), timed))


def _moves(topology: Topology, nodes_doubted: str) -> Hooks:
    """Moves of threads are seen anyway, in ``on_migrate``."""
    nodes = [node.cpus for node in value_of(topology.nodes) or () if node.cpus]
    caches = [cache.cpus for cache in value_of(topology.last_caches) or ()]
    no_caches = "" if len(caches) > 1 else "one last-level cache visible"
    return Hooks(
        (
            Capability("cache moves", "none" if no_caches else "tp_btf", no_caches),
            Capability("node moves", "none" if nodes_doubted else "tp_btf", nodes_doubted),
        ),
        constants={"node_of_cpu": _place_of_cpu(nodes), "cache_of_cpu": _place_of_cpu(caches)},
    )


def _place_of_cpu(places: list[Cpus]) -> list[int]:
    """(MAX_CPUS,) the number of each CPU's place, from 1; 0 where there is none."""
    place_of = [0] * _MAX_CPUS
    for number, cpus in enumerate(places, 1):
        for cpu in cpus:
            place_of[cpu] = number
    return place_of


def allocations(kernel: Btf) -> Hooks:
    shift = _page_node_shift(kernel)
    if shift is None or not kernel.tracepoint_arguments("mm_page_alloc"):
        reason = "no mm_page_alloc, or no zone lists, in this kernel's BTF"
        return Hooks((Capability("allocations", "none", reason),))
    told = Capability("allocations", "tp_btf")
    return Hooks((told,), ("on_page_alloc",), constants={"page_node_shift": shift})


def _first_touch(kernel: Btf, new_pages: Hooks, refused: str) -> Capability:
    """
    A fault tells the segment of the page that comes of it: no program but those of faults and of
    allocations.
    """
    if not new_pages.programs:
        return Capability("first touch", "none", "new pages are not seen, see allocations")
    if not refused:
        return Capability("first touch", "fentry")
    if not kernel.tracepoint_arguments("page_fault_user"):
        return Capability("first touch", "none", refused)
    if "BPF_FUNC_find_vma" not in kernel.enum("bpf_func_id"):
        return Capability("first touch", "none", f"{refused}; and no helper bpf_find_vma()")
    missed = "not of pages that system calls touch"
    return Capability("first touch", "page_fault_user+find_vma", f"{missed}: {refused}")


def _page_node_shift(kernel: Btf) -> int | None:
    """
    Where the node stands in the first word of ``struct page``: in its highest NODES_SHIFT bits.

    That holds with SPARSEMEM_VMEMMAP, which x86-64 and arm64 have: no section number stands above
    (include/linux/page-flags-layout.h). A zone list tells NODES_SHIFT: it has
    ``MAX_NUMNODES * MAX_NR_ZONES + 1`` entries (include/linux/mmzone.h).
    """
    zones = kernel.elements("pglist_data", "node_zones")
    entries = kernel.elements("zonelist", "_zonerefs")
    if not zones or not entries:
        return None
    nodes = (entries - 1) // zones
    return 64 - (nodes - 1).bit_length()


def _balancing(kernel: Btf, refusal: Refusal) -> list[Hooks]:
    refused = refusal("task_numa_fault")
    hint = Capability("hint faults", "none" if refused else "fentry", refused)
    outcomes = ("move", "swap", "stick")
    known = all(kernel.tracepoint_arguments(f"sched_{each}_numa") for each in outcomes)
    balancing = (
        Hooks(
            (Capability("balancing", "tp_btf"),),
            tuple(f"on_balance_{each}" for each in outcomes),
        )
        if known
        else Hooks((Capability("balancing", "none", "built without CONFIG_NUMA_BALANCING"),))
    )
    return [
        Hooks((hint,), () if refused else ("on_hint_fault",)),
        balancing,
        _timed_migration(refusal),
    ]


def _timed_migration(refusal: Refusal) -> Hooks:
    """The function's newer name first (73eab3ca481e)."""
    names = "migrate_misplaced_folio", "migrate_misplaced_page"
    refusals = {name: refusal(name) for name in names}
    function = next((name for name in names if not refusals[name]), "")
    if not function:
        return Hooks((Capability("numa_migrate", "none", refusals[names[0]]),))
    programs = "on_migration_begin", "on_migration_end"
    told = Capability("numa_migrate", "fentry")
    return Hooks((told,), programs, functions=dict.fromkeys(programs, function))


def _migrations(kernel: Btf) -> Hooks:
    arguments = kernel.tracepoint_arguments("mm_migrate_pages")
    if not arguments:
        return Hooks((Capability("page moves", "none", "built without CONFIG_MIGRATION"),))
    told = Capability("page moves", "tp_btf")
    return Hooks((told,), ("on_migrate_pages" if arguments >= 8 else "on_migrate_pages_7",))


def merged(parts: list[Hooks]) -> Hooks:
    return Hooks(
        tuple(chain.from_iterable(part.capabilities for part in parts)),
        tuple(chain.from_iterable(part.programs for part in parts)),
        {program: name for part in parts for program, name in part.functions.items()},
        {name: value for part in parts for name, value in part.constants.items()},
    )
