"""Facts: what is known says where from, what is not says why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.host.facts import Known, Unknown, cpus, entries, format_cpus, number, parse_cpus


@given(st.frozensets(st.integers(0, 4096)))
def test_a_list_of_cpus_is_read_as_it_is_written(numbers):
    assert numbers == parse_cpus("" if not numbers else format_cpus(numbers))


@pytest.mark.parametrize(
    ("numbers", "expected"), [((), "none"), ((3,), "3"), ((0, 1, 2, 8, 10, 11), "0-2,8,10-11")]
)
def test_neighbours_are_written_as_ranges(numbers, expected):
    assert expected == format_cpus(numbers)


def test_a_number_has_its_source(tmp_path):
    path = tmp_path / "numa_balancing"
    path.write_text("0\n")

    assert Known(0, str(path)) == number(path)


def test_absent_is_not_zero(tmp_path):
    assert Unknown(f"{tmp_path}/no does not exist") == number(tmp_path / "no")


def test_what_is_not_understood_is_shown(tmp_path):
    path = tmp_path / "online"
    path.write_text("all of them\n")

    assert Unknown(f"{path} is not understood: 'all of them'") == cpus(path)


def test_a_directory_in_place_of_a_file_is_a_reason(tmp_path):
    assert Unknown(f"{tmp_path}: Is a directory") == number(tmp_path)


def test_entries_are_in_the_order_of_their_numbers(tmp_path):
    for name in ("cpu10", "cpu2", "cpufreq"):
        (tmp_path / name).mkdir()

    assert ["cpu2", "cpu10"] == [path.name for path in entries(tmp_path, "cpu[0-9]*")]
