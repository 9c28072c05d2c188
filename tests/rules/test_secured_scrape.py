"""A real Prometheus before a port with TLS, client certificates and passwords."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bcrypt
import pytest
import trustme
import yaml

from exporters.access import Access
from exporters.live import Live
from exporters.prometheus import Page
from exporters.server import serving
from tests.rules.prometheus_server import Prometheus, running_prometheus, wait_until

PASSWORD = "s3cret"


@pytest.fixture(scope="module")
def prometheus(full_page: Page, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It scrapes with all that is asked for, and with less."""
    directory = tmp_path_factory.mktemp("secured")
    access = Access(web_config(directory))
    with (
        serving(("127.0.0.1", 0), full_page, Live("node"), access=access) as address,
        running_prometheus(directory, address, jobs=jobs(directory)) as prometheus,
    ):
        yield prometheus


def web_config(directory: Path) -> Path:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.pem")
    for name in ("127.0.0.1", "scraper"):
        certificate = authority.issue_cert(name)
        certificate.private_key_pem.write_to_path(directory / f"{name}.key")
        certificate.cert_chain_pems[0].write_to_path(directory / f"{name}.pem")
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(10)).decode()
    tls = {
        "cert_file": "127.0.0.1.pem",
        "key_file": "127.0.0.1.key",
        "client_auth_type": "RequireAndVerifyClientCert",
        "client_ca_file": "ca.pem",
    }
    content = {"tls_server_config": tls, "basic_auth_users": {"prometheus": hashed}}
    (directory / "web.yaml").write_text(yaml.safe_dump(content))
    return directory / "web.yaml"


def jobs(directory: Path) -> dict[str, dict[str, Any]]:
    trust = {"ca_file": str(directory / "ca.pem")}
    ours = {name: str(directory / f"scraper.{end}") for name, end in CERTIFICATE.items()}
    password = {"username": "prometheus", "password": PASSWORD}
    return {
        "with everything": {"scheme": "https", "tls_config": trust | ours, "basic_auth": password},
        "without certificate": {"scheme": "https", "tls_config": trust, "basic_auth": password},
        "without password": {"scheme": "https", "tls_config": trust | ours},
        "without TLS": {"basic_auth": password},
    }


CERTIFICATE = {"cert_file": "pem", "key_file": "key"}


def test_with_certificate_and_password_the_page_is_scraped(prometheus):
    wait_until(lambda: prometheus.query('tailtrace_targets{job="with everything"}'))


@pytest.mark.parametrize("lacking", ["certificate", "password", "TLS"])
def test_without_one_of_them_it_is_not(prometheus, lacking):
    wait_until(lambda: prometheus.query(f'up{{job="without {lacking}"}} == 0'))

    assert [] == prometheus.query(f'tailtrace_targets{{job="without {lacking}"}}')
