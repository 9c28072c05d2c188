"""The files of the page for people, read once at start, and the licences of what is bundled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tracer.errors import UnavailableError

FOLDER = Path(__file__).with_name("page")

_CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}

_BUNDLED = "vendor/uPlot.iife.min.js"


@dataclass(frozen=True, slots=True)
class Asset:
    content_type: str
    body: bytes


def assets(folder: Path = FOLDER) -> dict[str, Asset]:
    """
    By the path that they are served at; ``/`` is the page itself.

    Raises UnavailableError where the bundled library is missing.
    """
    if not (folder / _BUNDLED).is_file():
        raise UnavailableError(
            f"{folder / _BUNDLED} is missing: this is no wheel, so build it with `make page`"
        )
    files = [*folder.glob("*.*"), *folder.glob("vendor/*.*")]
    found = {
        f"/{file.relative_to(folder)}": Asset(_CONTENT_TYPES[file.suffix], file.read_bytes())
        for file in files
        if file.suffix in _CONTENT_TYPES
    }
    return found | {"/": found.pop("/index.html")}
