"""Text that strangers wrote, made fit to be shown and exported."""

from __future__ import annotations

MAX_SHOWN = 64
"""Characters that a name keeps."""


def visible(raw: bytes, limit: int = MAX_SHOWN) -> str:
    """
    Bytes as printable text of at most ``limit`` characters; ``…`` stands for what was cut off.

    Invalid UTF-8 and every character that does not print (controls, direction marks, line
    separators) appear as escapes: ``a\\x1b``.
    """
    text = raw[: 4 * limit].decode("utf-8", "backslashreplace")
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"
