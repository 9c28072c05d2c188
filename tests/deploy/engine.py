"""
An engine in a pod: marks its steps, belongs to another user, and has closed its page's descriptor
(as ``stepmark.h`` does). Run as root; it prints a line when its first step is done, and ends when
its standard input does: it does not outlive those who test with it.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
import time
from pathlib import Path

import stepmark

NOBODY = 65534
_PR_SET_DUMPABLE = 4  # include/uapi/linux/prctl.h


def close_page_descriptors() -> None:
    for path in Path("/proc/self/fd").iterdir():
        if path.is_symlink() and "memfd:stepmark" in str(path.readlink()):
            os.close(int(path.name))


def become_nobody() -> None:
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    # As after exec by that user: its files in /proc belong to it, and not to root.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)


def main() -> None:
    with stepmark.step("decode"):
        close_page_descriptors()
    become_nobody()
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        with stepmark.step("decode"):
            time.sleep(0.002)


if __name__ == "__main__":
    main()
