"""What tests may ask for that not everybody has."""

from __future__ import annotations

import os

import pytest


def need_root() -> None:
    """Skip without root, or fail when KERNEL_TESTS=1."""
    if os.geteuid() == 0:
        return
    if os.environ.get("KERNEL_TESTS") == "1":
        pytest.fail("KERNEL_TESTS=1, but this is not root")
    pytest.skip("needs root (KERNEL_TESTS=1 turns this skip into a failure)")
