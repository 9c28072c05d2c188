"""Effective capabilities, as /proc/self/status tells them."""

from __future__ import annotations

import pytest

from tracer.host.privileges import Privilege, in_words, lacking


@pytest.mark.parametrize(
    ("effective", "missing"),
    [
        ("0000000000000000", "CAP_BPF and CAP_SYS_PTRACE and CAP_CHECKPOINT_RESTORE"),
        ("0000008000000000", "CAP_SYS_PTRACE and CAP_CHECKPOINT_RESTORE"),
        ("0000000000200000", "CAP_SYS_PTRACE"),
        ("000001ffffffffff", ""),
    ],
    ids=["none", "BPF alone", "SYS_ADMIN stands for its parts", "all"],
)
def test_what_is_lacking_is_named(tmp_path, effective, missing):
    (tmp_path / "self").mkdir()
    (tmp_path / "self/status").write_text(f"Name:\tx\nCapEff:\t{effective}\nCapBnd:\t0\n")
    wanted = (Privilege.BPF, Privilege.SYS_PTRACE, Privilege.CHECKPOINT_RESTORE)

    assert missing == in_words(lacking(*wanted, proc=tmp_path))
