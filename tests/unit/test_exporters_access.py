"""The agent's port with TLS, client certificates and passwords, before real clients."""

from __future__ import annotations

import base64
import http.client
import os
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import bcrypt
import pytest
import trustme
import yaml

from exporters.access import Access
from exporters.live import Live
from exporters.passwords import Passwords
from exporters.prometheus import Page
from exporters.server import CONNECTIONS, Address, serving
from tracer import catalog
from tracer.errors import UsageError
from tracer.model import Family

HASH = bcrypt.hashpw(b"s3cret", bcrypt.gensalt(4)).decode()
ALICE = {"alice": HASH}


class Site:
    """A directory with a web configuration, its certificates, and the authority behind them."""

    def __init__(self, directory: Path) -> None:
        self.authority = trustme.CA()
        self.authority.cert_pem.write_to_path(directory / "ca.pem")
        self.file = directory / "web.yaml"
        self.directory = directory
        self.issue("127.0.0.1")

    def issue(self, name: str) -> None:
        server = self.authority.issue_cert(name)
        server.private_key_pem.write_to_path(self.directory / "key.pem")
        server.cert_chain_pems[0].write_to_path(self.directory / "cert.pem")

    def configure(self, users: dict[str, str] | None = None, **tls: str) -> Access:
        files = {"cert_file": "cert.pem", "key_file": "key.pem"}
        content = {"tls_server_config": files | tls, "basic_auth_users": users or {}}
        self.file.write_text(yaml.safe_dump(content))
        return Access(self.file)

    def client(self, certificate: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.directory / "ca.pem")
        if certificate:
            self.authority.issue_cert("scraper").configure_cert(context)
        return context


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@contextmanager
def served(access: Access, deadline_seconds: float = 20) -> Iterator[Address]:
    page = Page(interval_seconds=60)
    page.publish([Family(catalog.LOST, {("ring_full",): 3})])
    with serving(("127.0.0.1", 0), page, Live("node"), deadline_seconds, access) as address:
        yield address


def ask(
    address: Address,
    context: ssl.SSLContext | None = None,
    user: str = "",
    path: str = "/metrics",
) -> http.client.HTTPResponse:
    kind: Callable[..., http.client.HTTPConnection] = http.client.HTTPConnection
    options = {}
    if context:
        kind, options = http.client.HTTPSConnection, {"context": context}
    connection = kind(*address, timeout=20, **options)
    headers = {"Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"} if user else {}
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


def test_over_tls_the_page_is_read(site):
    access = site.configure()

    with served(access) as address:
        assert ask(address, site.client()).status == 200
    assert access.scheme == "https"


def test_who_speaks_no_tls_gets_nothing_and_holds_nobody_up(site):
    with served(site.configure()) as address:
        with pytest.raises((http.client.HTTPException, OSError)):
            ask(address)
        assert ask(address, site.client()).status == 200


def test_a_client_that_hangs_in_the_handshake_is_hung_up_on(site):
    with (
        served(site.configure(), deadline_seconds=0.1) as address,
        socket.create_connection(address, timeout=20) as client,
    ):
        # Whatever is read ends: without a deadline this waits for the client's own timeout.
        while client.recv(4096):
            pass


def test_clients_that_hang_in_the_handshake_hold_nobody_up(site):
    with served(site.configure()) as address:
        silent = [socket.create_connection(address) for _ in range(CONNECTIONS - 1)]
        assert ask(address, site.client()).status == 200
        for client in silent:
            client.close()


def test_a_version_below_the_least_is_refused(site):
    context = site.client()
    context.maximum_version = ssl.TLSVersion.TLSv1_2

    with (
        served(site.configure(min_version="TLS13")) as address,
        pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"),
    ):
        ask(address, context)


VERIFIED = {"client_ca_file": "ca.pem"}


def test_a_client_without_a_certificate_is_refused_where_one_is_required(site):
    access = site.configure(client_auth_type="RequireAndVerifyClientCert", **VERIFIED)

    with served(access) as address:
        with pytest.raises((ssl.SSLError, OSError)):
            ask(address, site.client())
        assert ask(address, site.client(certificate=True)).status == 200


def test_a_certificate_of_a_stranger_is_refused_even_where_none_is_required(site):
    access = site.configure(client_auth_type="VerifyClientCertIfGiven", **VERIFIED)
    context = site.client()
    trustme.CA().issue_cert("scraper").configure_cert(context)

    with served(access) as address:
        assert ask(address, site.client()).status == 200
        with pytest.raises((ssl.SSLError, OSError)):
            ask(address, context)


def test_a_renewed_certificate_counts_from_the_next_connection_on(site):
    with served(site.configure()) as address:
        assert ask(address, site.client()).status == 200
        site.issue("elsewhere.example")

        with pytest.raises(ssl.SSLCertVerificationError):
            ask(address, site.client())


def test_a_change_for_the_worse_is_told_once_and_what_was_before_holds(site, caplog):
    with served(site.configure()) as address:
        (site.directory / "key.pem").write_text("nothing")

        assert [200, 200] == [ask(address, site.client()).status for _ in range(2)]
    (record,) = caplog.records
    assert record.getMessage().endswith("without a password; what was configured before holds")


def test_who_has_no_password_is_asked_for_one(site):
    with served(site.configure(ALICE)) as address:
        refused = ask(address, site.client())

        assert refused.status == 401
        assert refused.headers["WWW-Authenticate"].startswith('Basic realm="tailtrace"')
        assert ask(address, site.client(), "alice:s3cret").status == 200
        assert ask(address, site.client(), "alice:wrong").status == 401


def test_probes_need_no_password(site):
    with served(site.configure(ALICE)) as address:
        assert ask(address, site.client(), path="/healthz").status == 200


def test_a_user_who_is_removed_is_out(site):
    with served(site.configure(ALICE)) as address:
        assert ask(address, site.client(), "alice:s3cret").status == 200
        site.configure({"bob": HASH})

        assert ask(address, site.client(), "alice:s3cret").status == 401
        assert ask(address, site.client(), "bob:s3cret").status == 200


def basic(pair: bytes) -> str:
    return "Basic " + base64.b64encode(pair).decode()


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Basic",
        "Basic !",
        "Basic ü",
        "Bearer " + base64.b64encode(b"alice:s3cret").decode(),
        basic(b"alice"),
        basic(b"alice:"),
        basic(b"alice:s3cret "),
        basic(b"Alice:s3cret"),
        basic(b"bob:s3cret"),
        basic(b"alice:s3cret\0"),
        basic(b"\xff:s3cret"),
        basic(b"alice:" + b"x" * 60_000),
    ],
    ids=lambda text: repr(text[:24]),
)
def test_nothing_but_name_and_password_fits(authorization):
    assert not Passwords(ALICE).fit(authorization)


def test_a_pair_that_was_right_is_compared_once(monkeypatch):
    passwords = Passwords(ALICE)
    assert passwords.fit(basic(b"alice:s3cret"))
    monkeypatch.delattr(bcrypt, "checkpw")

    assert passwords.fit(basic(b"alice:s3cret"))


def mistaken(site: Site, file: str, content: str | None) -> str:
    if content is None:
        (site.directory / file).unlink()
    else:
        (site.directory / file).write_text(content)
    with pytest.raises(UsageError) as refused:
        site.configure(client_auth_type="VerifyClientCertIfGiven", **VERIFIED)
    assert "\n" not in str(refused.value)
    return str(refused.value).removeprefix(f"{site.file}: tls_server_config.")


@pytest.mark.parametrize(
    ("file", "key"),
    [("cert.pem", "cert_file"), ("key.pem", "key_file"), ("ca.pem", "client_ca_file")],
)
def test_a_file_that_is_not_there_is_named(site, file, key):
    line = mistaken(site, file, None)

    assert line.startswith(f"{key} is '{site.directory / file}': No such file")


@pytest.mark.parametrize("file", ["cert.pem", "key.pem"])
def test_a_certificate_that_is_none_is_a_mistake(site, file):
    assert "no certificate and its key" in mistaken(site, file, "nothing")


def test_the_key_of_another_certificate_is_a_mistake(site):
    other = site.authority.issue_cert("other.example").private_key_pem.bytes().decode()

    assert "(KEY_VALUES_MISMATCH)" in mistaken(site, "key.pem", other)


def test_a_key_with_a_password_is_a_mistake_and_asks_nobody(site):
    # Nothing to read from: whoever asks on the terminal fails here.
    locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\n{}\n-----END ENCRYPTED PRIVATE KEY-----\n"

    assert "without a password" in mistaken(
        site, "key.pem", locked.format(base64.b64encode(os.urandom(60)).decode())
    )


def test_authorities_that_are_none_are_a_mistake(site):
    assert mistaken(site, "ca.pem", "nothing").startswith("client_ca_file has no certificates")
