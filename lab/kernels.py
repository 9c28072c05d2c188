"""
Debian's stock kernels by short name, from the mirror that this machine's apt already uses.

Nothing is installed: apt's own client downloads with a sources list and a state of its own, the
packages are unpacked side by side below a cache directory outside of the checkout.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tracer.errors import UnavailableError, UsageError

SUITES = {
    "5.10": "bullseye",
    "6.1": "bookworm",
    "6.12": "trixie",
    "newest": "trixie-backports",
}
"""The suite of the Debian mirror that carries each kernel."""

TRACED = ("6.1", "6.12", "newest")
"""Those that are new enough for the tracer."""

_METAPACKAGE = "linux-image-amd64"
# Up to 6.12 one package holds everything; since then image, modules and their index are three.
_KERNEL_PACKAGE = re.compile(r"linux-(base|binary|image|modules)-\d\S*")
_IMAGES = ("boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

Progress = Callable[[str], object]


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel, ready to boot. ``release`` is what ``uname -r`` says inside."""

    name: str
    release: str
    image: Path


def cache_directory() -> Path:
    """TAILTRACE_LAB_CACHE, else ``tailtrace-lab`` below the user's cache directory."""
    if chosen := os.environ.get("TAILTRACE_LAB_CACHE"):
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailtrace-lab"


def cached(name: str) -> Kernel | None:
    """The kernel if it was fetched before."""
    root = cache_directory() / name
    return _unpacked(name, root) if root.is_dir() else None


def fetch(name: str, progress: Progress = lambda _: None) -> Kernel:
    """
    The kernel of that short name, downloaded on first use.

    Raises UsageError for an unknown name, UnavailableError when the mirror does not offer it.
    """
    if name not in SUITES:
        raise UsageError(f"kernel {name!r}: unknown; there are {', '.join(SUITES)}")
    if kernel := cached(name):
        return kernel
    cache = cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=f"{name}.") as scratch:
        root = _download(name, Path(scratch), progress)
        kernel = _unpacked(name, root)
        _index_modules(kernel, root)
        # Complete or absent: an interrupted fetch leaves nothing that looks like a kernel.
        root.rename(cache / name)
    return _unpacked(name, cache / name)


def kernel_packages(depends: Iterable[str]) -> list[str]:
    """The packages that hold the kernel, in lines of ``apt-cache depends --recurse``."""
    return sorted({line for line in depends if _KERNEL_PACKAGE.fullmatch(line)})


def debian_mirror() -> str:
    """The archive's address in apt's own configuration. Raises UnavailableError without one."""
    form = ("apt-get", "indextargets", "--format", "$(REPO_URI)", "LABEL: Debian")
    if addresses := _output(form).split():
        return addresses[0]
    raise UnavailableError("apt lists no Debian archive: configure one, then run apt-get update")


def _download(name: str, scratch: Path, progress: Progress) -> Path:
    suite, mirror = SUITES[name], debian_mirror()
    environment = {**os.environ, "APT_CONFIG": str(_private_apt(scratch, mirror, suite))}
    progress(f"{name}: reading the package list of {suite}")
    update = ("apt-get", "-o", "APT::Update::Error-Mode=any", "update")
    done = subprocess.run(update, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:]
        raise UnavailableError(f"kernel {name}: no suite {suite} at {mirror}: {''.join(reason)}")
    depends = _output(("apt-cache", "depends", "--recurse", "-i", _METAPACKAGE), env=environment)
    packages = kernel_packages(depends.splitlines())
    if not packages:
        raise UnavailableError(f"kernel {name}: {suite} at {mirror} has no {_METAPACKAGE}")
    progress(f"{name}: downloading {' '.join(packages)}")
    _output(("apt-get", "download", *packages), env=environment, cwd=scratch)
    for archive in scratch.glob("*.deb"):
        _output(("dpkg", "-x", str(archive), str(scratch / "root")))
    return scratch / "root"


def _private_apt(scratch: Path, mirror: str, suite: str) -> Path:
    """An apt configuration that knows one suite and shares no state with the machine's."""
    for directory in ("lists/partial", "cache/archives/partial"):
        (scratch / directory).mkdir(parents=True)
    (scratch / "status").touch()
    (scratch / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {mirror} {suite} main\n")
    config = scratch / "apt.conf"
    config.write_text(
        f'Dir::Etc::sourcelist "{scratch}/sources.list";\n'
        'Dir::Etc::sourceparts "-";\n'
        'Dir::Etc::preferences "-";\n'
        'Dir::Etc::preferencesparts "-";\n'
        f'Dir::State "{scratch}";\n'
        f'Dir::State::status "{scratch}/status";\n'
        f'Dir::Cache "{scratch}/cache";\n'
        'Acquire::Languages "none";\n'
        'Acquire::Retries "3";\n'
        'APT::Sandbox::User "root";\n'
    )
    return config


def _unpacked(name: str, root: Path) -> Kernel:
    images = [image for pattern in _IMAGES for image in root.glob(pattern)]
    if len(images) != 1:
        raise UnavailableError(
            f"kernel {name}: {len(images)} images in {root}, expected one: remove the directory"
        )
    image = images[0]
    in_boot = image.parent.name == "boot"
    release = image.name.removeprefix("vmlinuz-") if in_boot else image.parent.name
    return Kernel(name, release, image)


def _index_modules(kernel: Kernel, root: Path) -> None:
    depmod = shutil.which("depmod", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if depmod is None:
        raise UnavailableError("depmod is missing: apt-get install kmod")
    # Modules lie in /lib, in packages since Debian 13 in /usr/lib.
    modules = Path("lib/modules") / kernel.release
    base = root if (root / modules).is_dir() else root / "usr"
    _output((depmod, "-b", str(base), kernel.release))


def _output(
    command: tuple[str, ...], env: dict[str, str] | None = None, cwd: Path | None = None
) -> str:
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout
