"""Runs in the guest: traces a program's memory; both accounts of it, the program's too, as JSON."""

import ctypes
import json
import subprocess
import sys
from pathlib import Path

from tracer.kernel.btf import Btf, wire
from tracer.kernel.hooks import plan
from tracer.kernel.trace import KernelTrace
from tracer.selftest.observer import Observer

_SET_MEMPOLICY, _BIND = 238, 2  # x86-64; include/uapi/linux/mempolicy.h
_BOTH_NODES = ctypes.c_ulong(0b11)


def keep_out_of_balancing() -> None:
    """Memory with a policy is not balanced, so that all balancing is the program's."""
    size = 8 * ctypes.sizeof(_BOTH_NODES)
    if ctypes.CDLL(None).syscall(_SET_MEMPOLICY, _BIND, ctypes.byref(_BOTH_NODES), size):
        raise OSError("set_mempolicy")


def mark_page(pid: int) -> int:
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return next(int(line.split("-")[0], 16) for line in lines if "/memfd:stepmark" in line)


def account(kernel: KernelTrace, program: str) -> dict[str, object]:
    observer = Observer(kernel)
    with subprocess.Popen([program], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        observer.follow(process.pid, mark_page(process.pid))
        told, _ = process.communicate("go\n")
        assert process.returncode == 0
    pieces = observer.pieces(process.pid)
    causes, events = wire().names("cause", "CAUSE_"), wire().names("event", "EVENT_")
    return {
        "program": [json.loads(line) for line in told.splitlines()],
        "pieces": [
            {
                "step": int(piece["step"]),
                "span_ns": int(piece["until_ns"] - piece["from_ns"]),
                "ns": dict(zip(causes, piece["ns"].tolist(), strict=False)),
                "events": dict(zip(events, piece["events"].tolist(), strict=True)),
            }
            for piece in pieces
        ],
        "lost": kernel.lost(),
    }


if __name__ == "__main__":
    keep_out_of_balancing()
    chosen = plan(Btf.of_kernel())
    with KernelTrace(chosen, tenant_slots=8, outlier_ns=10_000_000) as trace:
        found = account(trace, sys.argv[1])
    found["sources"] = {each.name: each.source for each in chosen.capabilities}
    print(json.dumps(found))
