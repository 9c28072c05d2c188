"""
Passwords of the web configuration file, compared by pyca's ``bcrypt``: the convention wants bcrypt,
Python's own ``crypt`` is gone since 3.13, and this library is maintained beside ``cryptography``,
ships wheels for every platform, and lets other threads run while it computes.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Mapping
from threading import Lock

_MAX_ACCEPTED = 100
_MAX_PASSWORD = 72  # bytes that bcrypt looks at
_NOBODY = "$2b$10$" + "." * 53
"""Compared with for a name that is not known, so that names cannot be told by the time it takes."""


class Passwords:
    """
    Users and the hashes of their passwords.

    A comparison takes bcrypt a tenth of a second, on purpose; so pairs that were right are known by
    a keyed digest, and no more than one comparison is made at a time.
    """

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users
        self._key = secrets.token_bytes(32)
        self._accepted: set[bytes] = set()
        self._comparing = Lock()

    def fit(self, authorization: str) -> bool:
        """Whether this is ``Basic`` and the base64 of NAME:PASSWORD, RFC 7617."""
        scheme, _, encoded = authorization.partition(" ")
        try:
            pair = base64.b64decode(encoded, validate=True)
        except ValueError:  # not base64, or not even ASCII
            return False
        if scheme.lower() != "basic":
            return False
        digest = hmac.digest(self._key, pair, "sha256")
        return digest in self._accepted or self._compare(pair, digest)

    def _compare(self, pair: bytes, digest: bytes) -> bool:
        import bcrypt  # noqa: PLC0415 - only those with users pay for it

        name, _, password = pair.partition(b":")
        hashed = self._users.get(name.decode(errors="replace"))
        if b"\0" in password:
            return False
        with self._comparing:
            same = bcrypt.checkpw(password[:_MAX_PASSWORD], (hashed or _NOBODY).encode())
        right = same and hashed is not None
        if right and len(self._accepted) < _MAX_ACCEPTED:
            self._accepted.add(digest)
        return right
