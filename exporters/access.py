"""
Who gets an answer, and by which transport: what a web configuration file says, as it says it now.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from exporters import web_config
from exporters.passwords import Passwords
from exporters.web_config import TlsServer, WebConfig
from tracer.errors import UsageError

log = logging.getLogger(__name__)

_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_VERIFY = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}

Stamps = Sequence[tuple[int, int] | None]
"""Inode and time of change of each file; None for one that is not there."""


class Access:
    """
    Follows the file and the certificates that it names: a change counts from the next connection
    on. A change for the worse is told in the log, and what was before holds.
    """

    def __init__(self, file: Path | None = None) -> None:
        """
        Without a file: plain HTTP for everybody. Raises UsageError when the file, or one that it
        names, is not what it should be.
        """
        self._file = file
        self._rules = _Rules.read(file) if file else _Rules(WebConfig(), None, [])
        self._stamps = _stamps(self._rules.files)

    @property
    def scheme(self) -> str:
        return "https" if self._rules.context else "http"

    def secured(self, connection: socket.socket) -> socket.socket:
        """The connection as it is to be read. Its handshake is done by who reads it first."""
        self._follow()
        if self._rules.context is None:
            return connection
        return self._rules.context.wrap_socket(
            connection, server_side=True, do_handshake_on_connect=False
        )

    def allows(self, authorization: str) -> bool:
        """Whether the value of an ``Authorization`` header is that of a user; empty without one."""
        return not self._rules.config.basic_auth_users or self._rules.passwords.fit(authorization)

    def _follow(self) -> None:
        if self._file is None:
            return
        stamps = _stamps(self._rules.files)
        if stamps == self._stamps:
            return
        self._stamps = stamps
        try:
            self._rules = _Rules.read(self._file)
        except UsageError as e:
            log.warning("%s; what was configured before holds", e)
        else:
            self._stamps = _stamps(self._rules.files)


@dataclass(frozen=True)
class _Rules:
    """One reading of the file."""

    config: WebConfig
    context: ssl.SSLContext | None
    files: Sequence[Path]
    """All that was read."""

    @classmethod
    def read(cls, file: Path) -> _Rules:
        config = web_config.load(file)
        tls = config.tls_server_config
        if tls is None:
            return cls(config, None, [file])
        named = (tls.cert_file, tls.key_file, tls.client_ca_file)
        files = [file, *(file.parent / each for each in named if each)]
        return cls(config, _context(tls, file), files)

    @cached_property
    def passwords(self) -> Passwords:
        return Passwords(self.config.basic_auth_users)


def _context(tls: TlsServer, file: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[tls.min_version]
    context.verify_mode = _VERIFY[tls.client_auth_type]
    certificate, key = (_readable(tls, name, file) for name in ("cert_file", "key_file"))
    try:
        # A password, though wrong, because without one OpenSSL asks on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as e:
        raise UsageError(
            f"{file}: tls_server_config.cert_file and key_file are no certificate and its key "
            f"({e.reason or 'not PEM'}); give both in PEM form, the key without a password"
        ) from e
    if tls.client_ca_file:
        _trust(context, _readable(tls, "client_ca_file", file), file)
    return context


def _trust(context: ssl.SSLContext, authorities: Path, file: Path) -> None:
    try:
        context.load_verify_locations(authorities)
    except ssl.SSLError as e:
        raise UsageError(
            f"{file}: tls_server_config.client_ca_file has no certificates; give them in PEM form"
        ) from e


def _readable(tls: TlsServer, key: str, file: Path) -> Path:
    path: Path = file.parent / getattr(tls, key)
    try:
        path.open("rb").close()
    except OSError as e:
        raise UsageError(
            f"{file}: tls_server_config.{key} is {str(path)!r}: {e.strerror}; give a PEM file that "
            "can be read"
        ) from e
    return path


def _stamps(files: Sequence[Path]) -> Stamps:
    return [_stamp(path) for path in files]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
