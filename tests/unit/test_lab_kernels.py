"""Which packages hold a kernel, and where kernels are kept."""

from pathlib import Path

import pytest

from lab import kernels
from tracer.errors import UsageError

# `apt-cache depends --recurse -i linux-image-amd64`, shortened, in both layouts there are.
ONE_PACKAGE = """\
linux-image-amd64
  Depends: linux-image-6.1.0-50-amd64
linux-image-6.1.0-50-amd64
  Depends: kmod
  Depends: linux-base
kmod
linux-base
"""
SPLIT_PACKAGES = """\
linux-image-amd64
  Depends: linux-base-amd64
  Depends: linux-image-7.3.4+deb13-amd64
linux-image-7.3.4+deb13-amd64
  PreDepends: linux-base
  Depends: linux-base-7.3.4+deb13-amd64
  Depends: linux-binary-7.3.4+deb13-amd64
  Depends: linux-modules-7.3.4+deb13-amd64
linux-base-amd64
linux-base-7.3.4+deb13-amd64
linux-binary-7.3.4+deb13-amd64
linux-modules-7.3.4+deb13-amd64
linux-base
<linux-initramfs-tool>
"""


def test_one_package_holds_an_older_kernel() -> None:
    assert kernels.kernel_packages(ONE_PACKAGE.splitlines()) == ["linux-image-6.1.0-50-amd64"]


def test_newest_kernels_are_split_over_four_packages() -> None:
    assert kernels.kernel_packages(SPLIT_PACKAGES.splitlines()) == [
        "linux-base-7.3.4+deb13-amd64",
        "linux-binary-7.3.4+deb13-amd64",
        "linux-image-7.3.4+deb13-amd64",
        "linux-modules-7.3.4+deb13-amd64",
    ]


def test_unknown_kernel_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"'4\.4': unknown; there are 5\.10, 6\.1, 6\.12, newest"):
        kernels.fetch("4.4")


def test_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAILTRACE_LAB_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert Path("/caches/tailtrace-lab") == kernels.cache_directory()

    monkeypatch.setenv("TAILTRACE_LAB_CACHE", "/elsewhere")
    assert Path("/elsewhere") == kernels.cache_directory()


@pytest.mark.parametrize("image", ["boot/vmlinuz-6.1.0-50", "usr/lib/modules/6.1.0-50/vmlinuz"])
def test_unpacked_kernel_is_found_in_both_layouts(
    image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAILTRACE_LAB_CACHE", str(tmp_path))
    file = tmp_path / "6.1" / image
    file.parent.mkdir(parents=True)
    file.touch()

    assert kernels.Kernel("6.1", "6.1.0-50", file) == kernels.cached("6.1")


def test_kernel_never_fetched_is_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAILTRACE_LAB_CACHE", str(tmp_path))

    assert kernels.cached("6.1") is None
