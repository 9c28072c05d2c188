"""
The agent's configuration: one YAML file into structs that cannot exist invalid.

Every key, its default and its range: ``docs/configuration.md``.
"""

from __future__ import annotations

import fnmatch
import ipaddress
import re
import string
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tracer import selector, typed_yaml
from tracer.typed_yaml import require

TENANT_FIELDS = ("comm", "container", "namespace", "pod")
TENANT_MAPPINGS = ("labels", "annotations")
"""What a tenant template may name: of the second kind one entry, ``labels[app]``."""

_SHELL_PATTERNS = ("comm", "namespace", "pod")
_REGULAR_EXPRESSIONS = ("cmdline", "cgroup")
_MAX_TARGETS = 1000
_MAX_TEXT = 1024
_MAX_TENANT = 128
_HOST = "[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"


def _require_range(key: str, value: float, low: float, high: float) -> None:
    require(low <= value <= high, key, value, f"{low} to {high}")


def _require_pattern(key: str, value: str, expression: str) -> None:
    try:
        re.compile(expression)
    except (re.error, OverflowError, RecursionError) as e:
        require(False, key, value, f"a valid pattern: {e}")
    require(1 <= len(value) <= _MAX_TEXT, key, value, f"1 to {_MAX_TEXT} characters long")


def _expression(field: str, pattern: str) -> str:
    """The regular expression that a key of a match stands for; empty for plain text."""
    if field in _SHELL_PATTERNS:
        return fnmatch.translate(pattern)
    return pattern if field in _REGULAR_EXPRESSIONS else ""


def _is_template(text: str) -> bool:
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError:
        return False
    return all(
        field is None or (_is_field(field) and not spec and not conversion)
        for _, field, spec, conversion in parts
    )


def _is_field(text: str) -> bool:
    entry = rf"(?:{'|'.join(TENANT_MAPPINGS)})\[[A-Za-z0-9_./-]+\]"
    return text in TENANT_FIELDS or re.fullmatch(entry, text) is not None


def _split_address(listen: str) -> tuple[str, int] | None:
    """Host and port; None when it is not an address to listen on."""
    parts = re.fullmatch(rf"(?:\[([0-9A-Fa-f:.]+)\]|({_HOST})):([0-9]{{1,5}})", listen)
    if parts is None or int(parts[3]) > 65535:
        return None
    if parts[1]:
        try:
            ipaddress.IPv6Address(parts[1])
        except ValueError:
            return None
    return parts[1] or parts[2], int(parts[3])


class Match(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a process must be like. Everything that is given must hold."""

    comm: str | None = None
    """Shell pattern over the process's comm."""

    cmdline: str | None = None
    """Regular expression found in the command line, arguments joined by spaces."""

    cgroup: str | None = None
    """Regular expression found in a cgroup path of the process, of any hierarchy."""

    user: str | None = None
    """Name or number of the effective user."""

    marked: bool | None = None
    """Whether the process has a mark page of its own."""

    namespace: str | None = None
    """Shell pattern over the namespace of the process's pod."""

    pod: str | None = None
    """Shell pattern over the name of the process's pod."""

    labels: str | None = None
    """Selector over the labels of the process's pod, as ``kubectl get --selector`` takes it."""

    def __post_init__(self) -> None:
        given = self.given
        if not given:
            keys = ", ".join(self.__struct_fields__)
            raise ValueError(f"{keys} are all missing, give at least one")
        for field, pattern in given.items():
            if isinstance(pattern, str):
                _require_pattern(field, pattern, _expression(field, pattern))
        try:
            selector.parse(self.labels or "")
        except ValueError as e:
            require(False, "labels", self.labels, str(e))

    @property
    def given(self) -> dict[str, str | bool]:
        """What must hold, by key."""
        values = ((field, getattr(self, field)) for field in self.__struct_fields__)
        return {field: value for field, value in values if value is not None}


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which processes are traced, and for whom they work."""

    name: str
    match: Match
    tenant: str = ""
    """A template over ``TENANT_FIELDS``; the rule's name when not given."""

    def __post_init__(self) -> None:
        plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", self.name) is not None
        require(plain, "name", self.name, "1 to 63 letters, digits, '_', '.', '-' (not first)")
        if not self.tenant:
            msgspec.structs.force_setattr(self, "tenant", self.name)
        short = len(self.tenant) <= _MAX_TENANT and self.tenant.isprintable()
        names = [*TENANT_FIELDS, *(f"{mapping}[KEY]" for mapping in TENANT_MAPPINGS)]
        fields = ", ".join(f"{{{name}}}" for name in names)
        require(
            short and _is_template(self.tenant),
            "tenant",
            self.tenant,
            f"1 to {_MAX_TENANT} printable characters with only {fields} in braces",
        )

    @property
    def asks_for_pods(self) -> bool:
        """Whether it cannot be decided without what only a kubelet tells."""
        match = self.match
        in_tenant = any(f"{{{mapping}[" in self.tenant for mapping in TENANT_MAPPINGS)
        return in_tenant or any((match.namespace, match.pod, match.labels))


def _require_reachable(rules: Sequence[Rule]) -> None:
    """Refuse a rule that is never asked: one before it holds whenever it would."""
    given = [rule.match.given.items() for rule in rules]
    for at, later in enumerate(rules):
        for earlier, asked in zip(rules[:at], given, strict=False):
            if asked <= given[at]:
                raise ValueError(
                    f"targets: the rule {later.name} decides nothing, because {earlier.name} "
                    "before it matches all that it matches; put it first, or remove it"
                )


class Tenants(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    max: int = 100
    """Tenants told apart; those beyond are counted together as ``other``."""

    def __post_init__(self) -> None:
        _require_range("max", self.max, 2, 1000)


class ExpectedNode(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    segment: str
    """Shell pattern over the names of shared segments, as `tailtrace memory` shows them."""

    node: int
    """Of the NUMA node on which its pages should be."""

    def __post_init__(self) -> None:
        _require_pattern("segment", self.segment, fnmatch.translate(self.segment))
        _require_range("node", self.node, 0, 1023)


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    max_segments: int = 32
    """Shared segments that are looked at, the largest."""

    expected: tuple[ExpectedNode, ...] = ()
    """The first that matches decides. Else a segment's memory policy does, or its users."""

    def __post_init__(self) -> None:
        _require_range("max_segments", self.max_segments, 0, 1000)


class History(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    directory: str = "/run/tailtrace"
    """Where recent history is kept; empty keeps none."""

    max_mb: int = 64
    """Of MiB; the oldest windows are dropped beyond. The history before it may have as much."""

    def __post_init__(self) -> None:
        absolute = not self.directory or self.directory.startswith("/")
        require(
            absolute and self.directory.isprintable() and len(self.directory) <= _MAX_TEXT,
            "directory",
            self.directory,
            "an absolute path, or empty to keep no history",
        )
        _require_range("max_mb", self.max_mb, 1, 65_536)

    @property
    def file(self) -> Path | None:
        """Of the agent that runs, or of the last one; None where no history is kept."""
        return Path(self.directory) / "recent.db" if self.directory else None


_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


class Kubelet(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Who tells of the node's pods. ``$NAME`` as host or name is read from the environment."""

    host: str = ""
    """Address of the node's kubelet. Empty: nobody is asked."""

    port: int = 10250
    server_name: str = ""
    """Whom the kubelet's certificate must be for; the host when empty."""

    ca_file: str = f"{_ACCOUNT}/ca.crt"
    """Certificates of those who may vouch for the kubelet."""

    token_file: str = f"{_ACCOUNT}/token"
    interval_seconds: int = 30
    """How often labels and annotations are read again. New pods are asked for at once."""

    def __post_init__(self) -> None:
        for key in ("host", "server_name"):
            value = getattr(self, key)
            plain = re.fullmatch(rf"|{_HOST}|[0-9A-Fa-f:.]+|\$[A-Za-z_][A-Za-z0-9_]*", value)
            require(plain is not None, key, value, "a name or address, or $VARIABLE")
        _require_range("port", self.port, 1, 65535)
        _require_range("interval_seconds", self.interval_seconds, 5, 3600)


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole configuration. ``Config()`` has every default."""

    targets: tuple[Rule, ...] = (Rule(name="marked", match=Match(marked=True), tenant="{comm}"),)
    """The first rule that matches a process decides."""

    tenants: Tenants = Tenants()
    memory: Memory = Memory()
    window_seconds: int = 60
    """Quantiles and ratios are over this much of the past."""

    drain_ms: int = 250
    """How often marks and kernel records are read and joined."""

    outlier_ms: float = 1.0
    """A single deschedule of at least this long is reported by itself."""

    stall_ms: float = 1.0
    """A hard timer that expires so late tells that its CPU stood still."""

    stall_probe_hz: int = 0
    """How often each CPU shows a sign of life besides the kernel's own; 0: only those."""

    listen: str = "127.0.0.1:9435"
    """Where metrics are served."""

    history: History = History()
    kubelet: Kubelet = Kubelet()

    def __post_init__(self) -> None:
        names = [rule.name for rule in self.targets]
        require(
            1 <= len(set(names)) == len(names) <= _MAX_TARGETS,
            "targets",
            names,
            f"1 to {_MAX_TARGETS} rules, each with a name of its own",
        )
        _require_reachable(self.targets)
        for rule in self.targets:
            require(
                bool(self.kubelet.host) or not rule.asks_for_pods,
                "kubelet.host",
                self.kubelet.host,
                f"given, because the rule {rule.name} asks for pods",
            )
        _require_range("window_seconds", self.window_seconds, 10, 3600)
        _require_range("drain_ms", self.drain_ms, 20, 5000)
        _require_range("outlier_ms", self.outlier_ms, 0.05, 60_000)
        _require_range("stall_ms", self.stall_ms, 0.1, 1000)
        _require_range("stall_probe_hz", self.stall_probe_hz, 0, 10_000)
        require(
            _split_address(self.listen) is not None,
            "listen",
            self.listen,
            "HOST:PORT or [IPV6]:PORT, such as 127.0.0.1:9435; port 0 takes any free one",
        )

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of ``listen``."""
        address = _split_address(self.listen)
        assert address is not None  # checked above
        return address


def load(path: Path) -> Config:
    """Read and check a configuration file. Raises UsageError: file, key, value, what is allowed."""
    return typed_yaml.load(path, Config)
