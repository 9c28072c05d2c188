"""The steal clock that the ledger reads is the kernel's own account of steal."""

from __future__ import annotations

import mmap
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.kernel.programs import bpf
from tracer.kernel.btf import Btf
from tracer.kernel.hooks import plan

JIFFY_NS = 10_000_000  # of /proc/stat, on every machine


def account() -> dict[int, int]:
    """CPU -> ns that were stolen from it since boot, as /proc/stat has it."""
    lines = re.findall(r"^cpu(\d+) (.*)$", Path("/proc/stat").read_text(), re.MULTILINE)
    return {int(cpu): int(times.split()[7]) * JIFFY_NS for cpu, times in lines}


@contextmanager
def clocks(folder: Path) -> Iterator[NDArray[np.uint64]]:
    """By CPU, as of its last switch."""
    from_cpustat = plan(Btf.of_kernel()).steal_source == "cpustat"
    program = bpf("steal_clock", folder, **({"STEAL_FROM_CPUSTAT": 1} if from_cpustat else {}))
    constants, data = Btf(program.btf).variables(".rodata"), program.constants()
    data[constants["has_steal_clock"][0]] = 1
    try:
        program.load()
        program.attach(program.programs())
        fd = program.section_fd(".bss")
        yield np.frombuffer(
            mmap.mmap(fd, mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ), np.uint64
        )
    finally:
        program.close()


@pytest.mark.usefixtures("trace")  # skips, or fails, where BPF cannot be loaded
def test_the_steal_clock_of_each_cpu_is_that_of_proc_stat(tmp_path: Path) -> None:
    cpus = os.sched_getaffinity(0)
    with clocks(tmp_path) as told:
        for cpu in cpus:
            os.sched_setaffinity(0, {cpu})
            time.sleep(0.05)
        os.sched_setaffinity(0, cpus)
        stolen = {cpu: int(told[cpu]) for cpu in cpus}

    for cpu, ns in account().items():
        if cpu in stolen:
            assert stolen[cpu] == pytest.approx(ns, rel=0.01, abs=2 * JIFFY_NS)
