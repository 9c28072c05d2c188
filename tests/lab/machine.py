"""Runs in the guest: what the machine looks like from inside, as JSON on stdout."""

import ctypes
import json
import os
import platform
import struct
from pathlib import Path

_BPF_SYSCALL = 321  # x86-64
_PROG_LOAD, _SOCKET_FILTER = 5, 1  # include/uapi/linux/bpf.h
_RETURN_0 = struct.pack("=BBhi", 0xB7, 0, 0, 0) + struct.pack("=BBhi", 0x95, 0, 0, 0)


def bpf_loads() -> bool:
    """Whether the kernel takes the smallest program: r0 = 0; exit."""
    instructions = ctypes.create_string_buffer(_RETURN_0)
    licence = ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack(
        "=IIQQ", _SOCKET_FILTER, 2, ctypes.addressof(instructions), ctypes.addressof(licence)
    ).ljust(128, b"\0")
    syscall = ctypes.CDLL(None).syscall
    return bool(syscall(_BPF_SYSCALL, _PROG_LOAD, attributes, len(attributes)) >= 0)


def sockets() -> int:
    files = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/physical_package_id")
    return len({file.read_text() for file in files})


if __name__ == "__main__":
    report = {
        "release": platform.release(),
        "cpus": os.cpu_count(),
        "sockets": sockets(),
        "nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))),
        "bpf_loads": bpf_loads(),
        "mounts": sorted(
            {line.split()[2] for line in Path("/proc/mounts").read_text().splitlines()}
            & {"bpf", "cgroup2", "proc", "sysfs", "tracefs"}
        ),
    }
    print(json.dumps(report))
