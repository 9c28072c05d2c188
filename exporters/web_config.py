"""
The web configuration file, in the convention of Prometheus' exporters: TLS, client certificates and
users with passwords. What it may say: ``docs/prometheus.md``.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from tracer import typed_yaml
from tracer.typed_yaml import require

_MAX_USERS = 100
_MIN_COST, _MAX_COST = 4, 14
_AUTH_TYPES = ("NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert")
_VERSIONS = ("TLS12", "TLS13")


class TlsServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Files are PEM; their paths are relative to the configuration file's directory."""

    cert_file: str
    key_file: str
    client_auth_type: str = "NoClientCert"
    client_ca_file: str = ""
    """Certificates of those who may vouch for clients."""

    min_version: str = "TLS12"

    def __post_init__(self) -> None:
        for key, allowed in (("client_auth_type", _AUTH_TYPES), ("min_version", _VERSIONS)):
            require(getattr(self, key) in allowed, key, getattr(self, key), " or ".join(allowed))
        require(
            bool(self.client_ca_file) == (self.client_auth_type != "NoClientCert"),
            "client_ca_file",
            self.client_ca_file,
            "given exactly when client_auth_type verifies clients",
        )


class WebConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``WebConfig()`` is plain HTTP for everybody."""

    tls_server_config: TlsServer | None = None
    basic_auth_users: dict[str, str] = msgspec.field(default_factory=dict)
    """Name -> bcrypt hash of the password."""

    def __post_init__(self) -> None:
        count = len(self.basic_auth_users)
        require(count <= _MAX_USERS, "basic_auth_users", count, f"at most {_MAX_USERS} users")
        for name, hashed in self.basic_auth_users.items():
            # Hashes are not shown: messages end up in logs.
            parts = re.fullmatch(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}", hashed)
            if parts is None:
                raise ValueError(
                    f"basic_auth_users.{name} is no bcrypt hash; make one with: "
                    f"htpasswd -nBC 10 {name}"
                )
            key = f"cost of the bcrypt hash basic_auth_users.{name}"
            cost = int(parts[1])
            require(_MIN_COST <= cost <= _MAX_COST, key, cost, f"{_MIN_COST} to {_MAX_COST}")


def load(path: Path) -> WebConfig:
    """Read and check the file. Raises UsageError: file, key, value, what is allowed."""
    return typed_yaml.load(path, WebConfig)
