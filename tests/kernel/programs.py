"""
Small C programs for what Python is too slow or too noisy for, and BPF programs that stand beside
the tests, built in a folder of the test.
"""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

from tracer.kernel.libbpf import BpfObject

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
INCLUDE = CHECKOUT / "stepmark/stepmark/include"
_ARCHITECTURE = {"x86_64": "x86", "aarch64": "arm64"}


def build(name: str, folder: Path) -> Path:
    """Compile ``name.c``, which waits for a line on its standard input after it said ``ready``."""
    program = folder / name
    command = ["gcc", "-O2", "-Wall", "-pthread", f"-I{INCLUDE}", "-o", program, HERE / f"{name}.c"]
    subprocess.run(command, check=True)
    return program


def bpf(name: str, folder: Path, **limits: int) -> BpfObject:
    """Compile ``name.bpf.c``, for this machine and with these constants; not loaded yet."""
    machine, built = platform.machine(), folder / f"{name}.bpf.o"
    command = [
        *("clang", "-g", "-O2", "-target", "bpf", "-mcpu=v3", f"-I{CHECKOUT / 'bpf'}"),
        *("-idirafter", f"/usr/include/{machine}-linux-gnu"),
        f"-D__TARGET_ARCH_{_ARCHITECTURE[machine]}",
        *(f"-D{limit}={value}" for limit, value in limits.items()),
        *("-c", str(HERE / f"{name}.bpf.c"), "-o", str(built)),
    ]
    subprocess.run(command, check=True)
    return BpfObject(built)
