"""What this process may do: its effective capabilities, see capabilities(7)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path


class Privilege(IntEnum):
    """Bits, from include/uapi/linux/capability.h."""

    DAC_READ_SEARCH = 2
    SYS_PTRACE = 19
    SYS_ADMIN = 21
    PERFMON = 38
    BPF = 39
    CHECKPOINT_RESTORE = 40


_PARTS_OF_SYS_ADMIN = (Privilege.PERFMON, Privilege.BPF, Privilege.CHECKPOINT_RESTORE)
"""It stands for all of them, as it did before Linux 5.8 and 5.9 divided it."""


def lacking(*wanted: Privilege, proc: Path = Path("/proc")) -> Sequence[Privilege]:
    """Those of the wanted that this process does not have."""
    status = (proc / "self/status").read_text()
    effective = int(status.partition("CapEff:")[2].split()[0], 16)
    held = {privilege for privilege in Privilege if effective >> privilege & 1}
    if Privilege.SYS_ADMIN in held:
        held.update(_PARTS_OF_SYS_ADMIN)
    return [privilege for privilege in wanted if privilege not in held]


def in_words(privileges: Sequence[Privilege]) -> str:
    return " and ".join(f"CAP_{privilege.name}" for privilege in privileges)
