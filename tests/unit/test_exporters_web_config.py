"""The web configuration file: what is accepted, and the one line that every mistake gets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from exporters.web_config import TlsServer, WebConfig, load
from tracer.errors import UsageError

REPOSITORY = Path(__file__).parents[2]
HASH = "$2y$10$" + "a" * 53


def refusal(tmp_path: Path, text: str) -> str:
    file = tmp_path / "web.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        load(file)
    return str(refused.value).removeprefix(f"{file}: ")


def test_a_whole_file_is_read(tmp_path):
    file = tmp_path / "web.yaml"
    file.write_text(
        "tls_server_config:\n  cert_file: a\n  key_file: b\n"
        "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: c\n"
        f"  min_version: TLS13\nbasic_auth_users:\n  prom-scraper: {HASH}\n"
    )

    assert {"prom-scraper": HASH} == load(file).basic_auth_users
    assert "TLS13" == load(file).tls_server_config.min_version


def test_an_empty_file_asks_nothing_of_anybody(tmp_path):
    (tmp_path / "web.yaml").write_text("")

    assert WebConfig() == load(tmp_path / "web.yaml")


def test_the_documented_file_is_read(tmp_path):
    guide = (REPOSITORY / "docs/prometheus.md").read_text()
    (tmp_path / "web.yaml").write_text(re.search(r"```yaml\n(tls_.*?)```", guide, re.S)[1])

    assert ["prometheus"] == list(load(tmp_path / "web.yaml").basic_auth_users)


TLS = "cert_file: a, key_file: b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tls_server_config: {cert_file: a}", "tls_server_config.key_file is missing and has no "
         "default"),
        ("tls_server_config: on", "tls_server_config is 'on', must be a mapping of keys to values"),
        (
            f"tls_server_config: {{{TLS}, cipher_suites: [x]}}",
            "tls_server_config.'cipher_suites': no such key, must be one of cert_file, key_file, "
            "client_auth_type, client_ca_file, min_version",
        ),
        (
            f"tls_server_config: {{{TLS}, min_version: TLS10}}",
            "tls_server_config.min_version is 'TLS10', must be TLS12 or TLS13",
        ),
        (
            f"tls_server_config: {{{TLS}, client_auth_type: RequestClientCert}}",
            "tls_server_config.client_auth_type is 'RequestClientCert', must be NoClientCert or "
            "VerifyClientCertIfGiven or RequireAndVerifyClientCert",
        ),
        (
            f"tls_server_config: {{{TLS}, client_ca_file: c}}",
            "tls_server_config.client_ca_file is 'c', must be given exactly when "
            "client_auth_type verifies clients",
        ),
        (
            f"tls_server_config: {{{TLS}, client_auth_type: VerifyClientCertIfGiven}}",
            "tls_server_config.client_ca_file is '', must be given exactly when "
            "client_auth_type verifies clients",
        ),
        (
            "basic_auth_users: {eve: secret}",
            "basic_auth_users.eve is no bcrypt hash; make one with: htpasswd -nBC 10 eve",
        ),
        (
            f"basic_auth_users: {{eve: {HASH.replace('10', '31')}}}",
            "cost of the bcrypt hash basic_auth_users.eve is 31, must be 4 to 14",
        ),
        ("basic_auth_users: {eve: [secret]}", "basic_auth_users has a value that is not text"),
        (
            "basic_auth_users: {" + ", ".join(f"u{n}: {HASH}" for n in range(101)) + "}",
            "basic_auth_users is 101, must be at most 100 users",
        ),
        (
            "basic-auth-users: {}",
            "'basic-auth-users': no such key, must be one of tls_server_config, basic_auth_users",
        ),
    ],
)  # fmt: skip
def test_a_mistake_gets_its_line(tmp_path, text, message):
    assert message == refusal(tmp_path, text)


@pytest.mark.parametrize("struct", [WebConfig, TlsServer])
def test_the_documentation_names_every_key(struct):
    text = (REPOSITORY / "docs/prometheus.md").read_text()

    assert [key for key in struct.__struct_fields__ if f"`{key}`" not in text] == []
