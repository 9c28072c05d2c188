"""The agent's port: what it answers, and that no client can hold it up."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from exporters.assets import assets
from exporters.live import Live
from exporters.prometheus import Page
from exporters.server import CONNECTIONS, Address, serving
from tracer import catalog
from tracer.errors import UnavailableError, UsageError
from tracer.model import Family

LOST = Family(catalog.LOST, {("ring_full",): 3})


@pytest.fixture(scope="module")
def page() -> Page:
    page = Page(interval_seconds=60)
    page.publish([LOST])
    return page


LIVE = Live("node", patience_seconds=0.1)


@pytest.fixture(scope="module")
def address(page: Page) -> Iterator[Address]:
    with serving(("127.0.0.1", 0), page, LIVE) as address:
        yield address


def ask(
    address: Address, path: str, method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(*address, timeout=20)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def hang(address: Address) -> socket.socket:
    """A client that connects, begins a request and falls silent."""
    client = socket.create_connection(address, timeout=20)
    client.sendall(b"GET /metrics HTTP/1.1\r\nHost:")
    return client


def test_metrics(address):
    response, body = ask(address, "/metrics")

    assert response.status == 200
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert b'tailtrace_lost_total{reason="ring_full"} 3\n' in body


def test_metrics_in_openmetrics(address):
    response, body = ask(address, "/metrics?x=1", Accept="application/openmetrics-text")

    assert response.headers["Content-Type"].startswith("application/openmetrics-text; version=1")
    assert body.endswith(b"# EOF\n")


def test_head_answers_without_a_body(address):
    response, body = ask(address, "/metrics", "HEAD")

    assert (response.status, body) == (200, b"")
    assert int(response.headers["Content-Length"]) > 0


def test_the_page_for_people_and_all_that_it_loads(address):
    response, body = ask(address, "/")
    loaded = re.findall(r'(?:src|href)="(/[^"]+)"', body.decode())

    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert {"/page.css", "/main.js", "/vendor/uPlot.iife.min.js"} < set(loaded)
    for path in {*loaded} - {"/live.json"}:
        assert ask(address, path)[0].status == 200, path


def test_licences_of_what_is_bundled_are_served(address):
    assert b"MIT" in ask(address, "/vendor/uPlot.LICENSE.txt")[1]


def test_a_checkout_without_the_bundled_library_says_how_to_get_it(tmp_path):
    with pytest.raises(UnavailableError, match=r"uPlot\.iife\.min\.js is missing.*`make page`"):
        assets(tmp_path)


def test_the_page_has_no_script_or_style_in_itself(address):
    _, body = ask(address, "/")

    assert not re.search(rb"<style|style=|<script>|\son[a-z]+=|javascript:", body, re.IGNORECASE)


def test_live_state(page):
    live = Live("node-17")
    with serving(("127.0.0.1", 0), page, live) as address, ThreadPoolExecutor() as pool:
        asked = pool.submit(ask, address, "/live.json")
        while not live.wanted:
            time.sleep(0.001)
        live.publish(lambda: {"steps": 3})
        response, body = asked.result()

    assert response.headers["Content-Type"] == "application/json"
    state = json.loads(body)
    assert (state["node"], state["steps"]) == ("node-17", 3)


def test_live_state_that_no_agent_makes_is_refused_with_the_reason(address):
    response, body = ask(address, "/live.json")

    assert response.status == 503
    assert body == b"the agent is starting, or stuck\n"


@pytest.mark.parametrize(
    "path",
    ["/nothing", "/metrics/", "/../metrics", "/%2e", "/package.json", "/index.html", "/../live.py"],
)
def test_anything_else_is_not_found(address, path):
    assert ask(address, path)[0].status == 404


@pytest.mark.parametrize("path", ["/", "/main.js", "/metrics", "/nothing"])
def test_headers_are_strict(address, path):
    headers = ask(address, path)[0].headers

    assert headers["Server"].strip() == "tailtrace"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; ")
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


def test_other_methods_are_refused_in_plain_text(address):
    response, body = ask(address, "/metrics", "DELETE")

    assert response.status == 501
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert b"<" not in body


def test_health_while_the_agent_publishes(address):
    response, body = ask(address, "/healthz")

    assert (response.status, body) == (200, b"ok\n")


@pytest.mark.parametrize("path", ["/healthz", "/metrics"])
def test_a_page_that_is_no_longer_published_is_refused_with_the_reason(path):
    now = [0.0]
    page = Page(interval_seconds=1, clock=lambda: now[0])
    page.publish([LOST])
    now[0] = 3.5

    with serving(("127.0.0.1", 0), page, LIVE) as address:
        response, body = ask(address, path)

    assert response.status == 503
    assert body == b"last published 3.5 s ago instead of every 1 s\n"


def test_a_hanging_client_does_not_hold_the_others_up(address):
    with hang(address):
        assert ask(address, "/metrics")[0].status == 200


def test_a_hanging_client_is_hung_up_on(page):
    with (
        serving(("127.0.0.1", 0), page, LIVE, deadline_seconds=0.1) as address,
        hang(address) as client,
    ):
        # Whatever is read ends: without a deadline this waits for the client's own timeout.
        while client.recv(4096):
            pass


def test_too_many_clients_are_told_so_until_others_leave(page):
    with serving(("127.0.0.1", 0), page, LIVE, deadline_seconds=3600) as address:
        hanging = [hang(address) for _ in range(CONNECTIONS)]
        with socket.create_connection(address, timeout=20) as client:
            assert client.recv(4096).startswith(b"HTTP/1.0 503")

        for client in hanging:
            client.close()
        answers = (ask_or_none(address) for _ in range(1000))
        assert 200 in answers


def ask_or_none(address: Address) -> int | None:
    """The status, None when the server hung up before it had read the request."""
    try:
        return ask(address, "/metrics")[0].status
    except ConnectionError:
        return None


def test_stopping_does_not_wait_for_hanging_clients(page):
    with serving(("127.0.0.1", 0), page, LIVE, deadline_seconds=3600) as address:
        client = hang(address)

    client.close()
    with pytest.raises(ConnectionRefusedError):
        ask(address, "/metrics")


def test_a_port_in_use_is_a_usage_error_with_the_way_out(page, address):
    host, port = address

    with (
        pytest.raises(
            UsageError, match=f"{host}:{port}: Address already in use; set `listen` to another"
        ),
        serving(address, page, LIVE),
    ):
        pass


def test_a_host_that_is_not_ours_is_a_usage_error(page):
    with (
        pytest.raises(UsageError, match=r"cannot serve metrics on 192\.0\.2\.1:9435"),
        serving(("192.0.2.1", 9435), page, LIVE),
    ):
        pass


def test_ipv6(page):
    with serving(("::1", 0), page, LIVE) as address:
        assert ask(address, "/healthz")[0].status == 200
