"""Which programs tell of memory, by kernel and topology."""

from __future__ import annotations

from tracer.host.facts import Known, Unknown
from tracer.host.topology import Cache, Node, Topology
from tracer.kernel.memory_hooks import memory_hooks, merged

TRACEPOINTS = {
    "page_fault_user": 3,
    "mm_page_alloc": 4,
    "mm_migrate_pages": 7,
    **dict.fromkeys(("sched_move_numa", "sched_swap_numa", "sched_stick_numa"), 3),
}
ZONES, MAX_NODES = 5, 1024


class Kernel:
    """The types of one, as far as they are asked for."""

    def __init__(self, tracepoints=TRACEPOINTS, helpers=("BPF_FUNC_find_vma",)):
        self.tracepoint_arguments = tracepoints.get
        self.enum = {"bpf_func_id": dict.fromkeys(helpers, 180)}.get

    def elements(self, name, field):
        arrays = {
            ("pglist_data", "node_zones"): ZONES,
            ("zonelist", "_zonerefs"): MAX_NODES * ZONES + 1,
        }
        return arrays[name, field]


def topology(*nodes):
    """Nodes of these CPUs; each pair of CPUs has a cache."""
    cpus = sorted(cpu for node in nodes for cpu in node)
    pairs = [frozenset(cpus[at : at + 2]) for at in range(0, len(cpus), 2)]
    unknown = Unknown("not asked")
    return Topology(
        online=Known(frozenset(cpus)),
        possible=unknown,
        sockets=unknown,
        cores=unknown,
        nodes=Known(tuple(Node(n, frozenset(each), unknown) for n, each in enumerate(nodes))),
        last_caches=Known(tuple(Cache(3, unknown, pair) for pair in pairs)),
    )


ONE_NODE, TWO_NODES = topology(range(2)), topology(range(4), range(4, 8))


def allowed(function):
    return ""


def refused(function):
    return f"{function} is refused"


def hooks(kernel, refusal, topology, nodes_doubted=""):
    found = merged(memory_hooks(kernel, refusal, topology, nodes_doubted))
    return found, {each.name: (each.source, each.reason) for each in found.capabilities}


def test_a_traced_fault_is_counted_and_timed_by_the_same_programs():
    found, told = hooks(Kernel(), allowed, ONE_NODE)

    assert found.programs == ("on_fault_begin", "on_fault_end")
    assert (told["fault count"], told["fault"]) == (("task+fentry", ""), ("fentry", ""))


def test_without_traced_functions_tracepoints_see_faults_begin():
    found, told = hooks(Kernel(), refused, ONE_NODE)

    assert found.programs == ("on_fault_user", "on_fault_kernel")
    assert told["fault count"] == ("task+tp_btf", "")
    assert told["fault"] == ("none", "handle_mm_fault is refused")


def test_without_any_event_faults_are_counted_with_a_reservation():
    found, told = hooks(Kernel({}), refused, ONE_NODE)

    assert found.programs == ()
    assert told["fault count"][0] == "task"
    assert told["fault count"][1].startswith("no event tells when a fault begins")


def test_with_one_node_nothing_is_told_of_places():
    found, told = hooks(Kernel(), allowed, ONE_NODE)

    places = "allocations", "hint faults", "numa_migrate", "page moves", "balancing", "node moves"
    assert {told[name] for name in (*places, "first touch")} == {("none", "one node visible")}
    assert "on_page_alloc" not in found.programs
    assert told["cache moves"] == ("none", "one last-level cache visible")


def test_nodes_that_mean_nothing_are_none():
    found, told = hooks(Kernel(), allowed, TWO_NODES, "nodes larger than a socket")

    assert told["allocations"] == told["node moves"] == ("none", "nodes larger than a socket")
    assert "on_page_alloc" not in found.programs
    assert told["cache moves"] == ("tp_btf", "")


def test_two_nodes_have_all_programs_and_places():
    found, told = hooks(Kernel(), allowed, TWO_NODES)

    assert {source for source, _ in told.values()} == {"task+fentry", "fentry", "tp_btf"}
    assert {"on_page_alloc", "on_hint_fault", "on_migrate_pages_7"} <= set(found.programs)
    assert found.constants["page_node_shift"] == 64 - 10  # 1,024 nodes
    assert found.constants["node_of_cpu"][:9] == [1, 1, 1, 1, 2, 2, 2, 2, 0]
    assert found.constants["cache_of_cpu"][:9] == [1, 1, 2, 2, 3, 3, 4, 4, 0]


def test_who_touches_first_is_told_by_the_fault_or_looked_up_by_its_address():
    _, traced = hooks(Kernel(), allowed, TWO_NODES)
    _, looked_up = hooks(Kernel(), refused, TWO_NODES)

    assert traced["first touch"] == ("fentry", "")
    source, reason = looked_up["first touch"]
    assert source == "page_fault_user+find_vma"
    assert reason == "not of pages that system calls touch: handle_mm_fault is refused"


def test_who_touches_first_is_not_told_without_an_event_and_what_knows_areas():
    no_page_alloc = {name: 3 for name in TRACEPOINTS if name != "mm_page_alloc"}
    no_fault = {"mm_page_alloc": 4}
    without = {
        "new pages are not seen, see allocations": hooks(Kernel(no_page_alloc), allowed, TWO_NODES),
        "handle_mm_fault is refused": hooks(Kernel(no_fault), refused, TWO_NODES),
        "handle_mm_fault is refused; and no helper bpf_find_vma()": hooks(
            Kernel(helpers=()), refused, TWO_NODES
        ),
    }

    assert [told["first touch"] for _, told in without.values()] == [
        ("none", reason) for reason in without
    ]


def test_the_function_that_moves_pages_is_found_by_either_name():
    def only_the_older(function):
        return "" if function != "migrate_misplaced_folio" else refused(function)

    newer, _ = hooks(Kernel(), allowed, TWO_NODES)
    older, _ = hooks(Kernel(), only_the_older, TWO_NODES)
    neither, told = hooks(Kernel(), refused, TWO_NODES)

    assert set(newer.functions.values()) == {"migrate_misplaced_folio"}
    assert older.functions == dict.fromkeys(
        ("on_migration_begin", "on_migration_end"), "migrate_misplaced_page"
    )
    assert neither.functions == {}
    assert told["numa_migrate"] == ("none", "migrate_misplaced_folio is refused")
