"""How a victim's group is limited, on v1 and v2 hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracer.errors import UnavailableError
from tracer.selftest.groups import CpuGroup


def group(directory: Path, *files: str) -> CpuGroup:
    for file in files:
        (directory / file).touch()
    return CpuGroup(directory)


def test_v2_has_one_file_for_a_quota(tmp_path: Path) -> None:
    group(tmp_path, "cpu.max").limit(0.3)

    assert (tmp_path / "cpu.max").read_text() == "30000 100000"


def test_v1_has_a_file_for_quota_and_period(tmp_path: Path) -> None:
    group(tmp_path, "cpu.cfs_period_us", "cpu.cfs_quota_us").limit(0.3)

    assert (tmp_path / "cpu.cfs_quota_us").read_text() == "30000"
    assert (tmp_path / "cpu.cfs_period_us").read_text() == "100000"


def test_a_group_without_the_controller_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"cpu\.max takes no 30000 100000: .*No such file"):
        group(tmp_path).limit(0.3)

    assert list(tmp_path.iterdir()) == []


def test_where_no_group_can_be_made_the_reason_is_given(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"no cgroup can be made here: .*No such file"):
        CpuGroup(tmp_path / "none" / "mine").make()
