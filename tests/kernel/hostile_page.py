"""A process that has a mark page and means no good: ``hostile_page.py KIND SECONDS``."""

from __future__ import annotations

import mmap
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np

import stepmark
from tracer.kernel.btf import wire

PAGE = wire().dtype("stepmark_page")


def main() -> None:
    kind, end = sys.argv[1], time.monotonic() + float(sys.argv[2])
    with stepmark.step("seed", tenants="seed"):
        pass  # a good page, which is spoiled now
    page, fd = _page()
    rng = np.random.default_rng(1)
    slot = threading.get_native_id() % len(page["slots"])
    while time.monotonic() < end:
        match kind:
            case "random":
                everything = page["slots"].view(np.uint8)
                everything[:] = rng.integers(0, 256, everything.shape, np.uint8)
            case "garbage_rings":
                ring = page["rings"][slot].view(np.uint8)
                ring[:] = rng.integers(0, 256, ring.shape, np.uint8)
                page["rings"]["number_end"][slot] = page["rings"]["number"][slot]
                page["slots"]["finished"][slot] += np.uint64(rng.integers(1, 5000))
            case "huge_counts":
                page["slots"]["finished"] = rng.integers(0, 2**63, len(page["slots"]), np.uint64)
                page["header"]["nr_kinds"] = page["header"]["nr_tenants"] = 2**32 - 1
                page["tenants"]["text"] = [
                    bytes(rng.integers(1, 32, 60, np.uint8)) for _ in range(256)
                ]
            case "shrinking":
                os.ftruncate(fd, 8192 if rng.random() < 0.5 else PAGE.itemsize)
            case "endless_writer":
                page["slots"]["seq"][slot] += np.uint64(1)
        print("spoiled", flush=True)
        time.sleep(0.01)


def _page() -> tuple[np.ndarray, int]:  # type: ignore[type-arg]
    """This process's own page, and a descriptor of it."""
    with Path("/proc/self/maps").open() as maps:
        (span,) = {line.split()[0] for line in maps if "memfd:stepmark" in line}
    fd = os.open(f"/proc/self/map_files/{span}", os.O_RDWR)
    return np.frombuffer(mmap.mmap(fd, PAGE.itemsize), PAGE)[0], fd


if __name__ == "__main__":
    main()
