"""The memory of maps: the kernel's arithmetic, and what is read of an object's definitions."""

from bench.maps import Map, Type, definitions, memory, scaled
from tracer.kernel.btf import wire

MMAPABLE = 1 << 10
PAGE = 4096

# As the kernel itself counts (map_mem_usage, Linux 6.18, 2 CPUs), where it counts.


def test_a_mappable_array_begins_on_a_page_of_its_own():
    histograms = Map("histograms", Type.ARRAY, 1001 * 5 * 833, 4, 8, MMAPABLE)
    processes = Map("processes", Type.ARRAY, 1024, 4, 544, MMAPABLE)

    assert 33_357_824 == memory(histograms, cpus=2)
    assert 561_152 == memory(processes, cpus=2)


def test_the_values_of_an_array_take_multiples_of_8_bytes():
    odd, even = (Map("a", Type.ARRAY, 10_000, 4, size) for size in (9, 16))

    assert memory(odd, 2) == memory(even, 2)
    assert 160_000 < memory(even, 2) < 160_000 + 2 * PAGE


def test_a_hash_has_all_its_elements_in_advance_and_one_more_a_cpu():
    targets = Map("targets", Type.HASH, 1024, 4, 4)

    assert 82_960 <= memory(targets, cpus=2) <= 82_960 + 2 * PAGE
    assert 64 * 1024 < memory(targets, cpus=1026) - memory(targets, cpus=2) + PAGE


def test_a_ring_has_three_pages_and_its_page_table_beside_the_data():
    assert 4_223_304 <= memory(Map("pieces", Type.RINGBUF, 1 << 22), 2) <= 4_223_304 + PAGE


def test_a_threads_storage_takes_the_allocators_next_size():
    def a_thread_more(value_size: int) -> int:
        one, two = (Map("threads", Type.TASK_STORAGE, n, 4, value_size) for n in (1, 2))
        return memory(two, 4) - memory(one, 4)

    assert 1024 + 192 == a_thread_more(632)
    assert 1024 + 192 == a_thread_more(1024 - 72 - 8)
    assert 2048 + 192 == a_thread_more(1024 - 72 - 7)


def test_a_definition_is_read_from_an_objects_types():
    types = [
        {"id": 1, "kind": "PTR", "type_id": 2},
        {"id": 2, "kind": "ARRAY", "type_id": 9, "nr_elems": 2},
        {"id": 3, "kind": "PTR", "type_id": 4},
        {"id": 4, "kind": "ARRAY", "type_id": 9, "nr_elems": 1024},
        {"id": 5, "kind": "PTR", "type_id": 6},
        {"id": 6, "kind": "TYPEDEF", "name": "u32", "type_id": 7},
        {"id": 7, "kind": "INT", "name": "unsigned int", "size": 4},
        {"id": 8, "kind": "PTR", "type_id": 10},
        {"id": 9, "kind": "INT", "name": "int", "size": 4},
        {"id": 10, "kind": "STRUCT", "name": "process", "size": 544},
        {
            "id": 11,
            "kind": "STRUCT",
            "size": 40,
            "members": [
                {"name": "type", "type_id": 1},
                {"name": "map_flags", "type_id": 3},
                {"name": "max_entries", "type_id": 3},
                {"name": "key", "type_id": 5},
                {"name": "value", "type_id": 8},
            ],
        },
        {"id": 12, "kind": "VAR", "name": "processes", "type_id": 11},
        {"id": 13, "kind": "DATASEC", "name": ".maps", "vars": [{"type_id": 12}]},
        {
            "id": 14,
            "kind": "DATASEC",
            "name": ".bss",
            "vars": [
                {"type_id": 0, "offset": 0, "size": 80},
                {"type_id": 0, "offset": 80, "size": 8},
            ],
        },
        {"id": 15, "kind": "DATASEC", "name": "license", "vars": []},
    ]

    assert [
        Map("processes", Type.ARRAY, 1024, 4, 544, MMAPABLE),
        Map(".bss", Type.ARRAY, 1, 4, 88, MMAPABLE),
    ] == list(definitions(types))


def test_only_what_grows_with_the_machine_is_scaled():
    limits = wire().enum("limits")
    maps = [Map(name, Type.ARRAY, 7, 4, 8) for name in ("histograms", "cpus", "threads", "other")]

    assert [
        3 * limits["HIST_CAUSES"] * limits["HIST_STRIDE"],
        256,
        10_000,
        7,
    ] == [each.entries for each in scaled(maps, cpus=256, threads=10_000, tenants=2)]
