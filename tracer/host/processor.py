"""Which processor this is, and how many cores a socket of it can have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tracer.host.facts import Fact, Known, Unknown, text

_CORES_IN_NAME = re.compile(r"\b(\d+)-Core\b")

# Cores of the largest part, by vendor, family and model as in /proc/cpuinfo: hypervisors often
# hide the name ("AMD EPYC Processor") but seldom these numbers. From the vendors' product lists.
_LARGEST_PART = {
    ("AuthenticAMD", 23, 1): ("EPYC 7001", 32),
    ("AuthenticAMD", 23, 49): ("EPYC 7002", 64),
    ("AuthenticAMD", 25, 1): ("EPYC 7003", 64),
    ("AuthenticAMD", 25, 17): ("EPYC 9004", 96),
    ("AuthenticAMD", 25, 160): ("EPYC 97x4", 128),
    ("AuthenticAMD", 26, 2): ("EPYC 9005", 128),
    ("AuthenticAMD", 26, 17): ("EPYC 9005 dense", 192),
    ("GenuineIntel", 6, 85): ("Xeon Scalable 1st to 3rd generation", 56),
    ("GenuineIntel", 6, 106): ("Xeon Scalable 3rd generation (Ice Lake)", 40),
    ("GenuineIntel", 6, 143): ("Xeon Scalable 4th generation", 60),
    ("GenuineIntel", 6, 207): ("Xeon Scalable 5th generation", 64),
    ("GenuineIntel", 6, 173): ("Xeon 6 with P-cores", 128),
    ("GenuineIntel", 6, 175): ("Xeon 6 with E-cores", 288),
}


@dataclass(frozen=True, slots=True)
class Processor:
    name: Fact[str]
    flags: Fact[frozenset[str]]
    """Known on x86 alone; arm64 lists instructions, not what the machine is."""

    cores_per_socket: Fact[int]
    """Cores that a physical socket of it has at most. The source says how this is known."""

    @classmethod
    def read(cls, proc: Path = Path("/proc")) -> Processor:
        listed = text(proc / "cpuinfo")
        if isinstance(listed, Unknown):
            return cls(listed, listed, listed)
        rows = (line.partition(":") for line in listed.value.split("\n\n", 1)[0].splitlines())
        first = {key.strip(): value.strip() for key, _, value in rows}
        return cls(
            _field(first, "model name", listed.source),
            _flags(first, listed.source),
            _cores_per_socket(first),
        )


def _field(first: dict[str, str], key: str, source: str) -> Fact[str]:
    return Known(first[key], source) if first.get(key) else Unknown(f"{source} has no {key!r}")


def _flags(first: dict[str, str], source: str) -> Fact[frozenset[str]]:
    flags = _field(first, "flags", source)
    return flags if isinstance(flags, Unknown) else Known(frozenset(flags.value.split()), source)


def _cores_per_socket(first: dict[str, str]) -> Fact[int]:
    name = first.get("model name", "")
    if in_name := _CORES_IN_NAME.search(name):
        return Known(int(in_name[1]), "so says the processor's name")
    try:
        key = first["vendor_id"], int(first["cpu family"]), int(first["model"])
    except (KeyError, ValueError):
        return Unknown("the processor's name and numbers do not tell its number of cores")
    if key not in _LARGEST_PART:
        return Unknown("processor {} family {} model {} is not in our table".format(*key))
    family, cores = _LARGEST_PART[key]
    return Known(cores, f"no part of the family {family} has more")
