"""
The agent's port: ``/metrics``, ``/healthz`` and the page for people. Nothing that a client does, or
fails to do, holds the agent up: a few connections at a time, one request each, all with a deadline.
"""

from __future__ import annotations

import logging
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from exporters.access import Access
from exporters.assets import assets
from exporters.live import Live
from exporters.prometheus import Page, negotiate
from tracer.errors import UsageError

log = logging.getLogger(__name__)

Address = tuple[str, int]
"""Host and port. Port 0 lets the system choose."""

CONNECTIONS = 16
"""Served at the same time; a browser opens six, and there may be two beside two Prometheus
servers."""

DEADLINE_SECONDS = 10.0
"""For a whole request, however slowly its bytes trickle. Prometheus' own default timeout."""

_BUSY = b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@contextmanager
def serving(
    address: Address,
    page: Page,
    live: Live,
    deadline_seconds: float = DEADLINE_SECONDS,
    access: Access | None = None,
) -> Iterator[Address]:
    """
    Serve both until the block is left. Yields the address that they are served at.

    Raises UsageError when the address cannot be had.
    """
    with _listen(address, page, live, deadline_seconds, access or Access()) as server:
        thread = threading.Thread(target=server.serve_forever, name="exporter", daemon=True)
        thread.start()
        try:
            yield server.server_address[:2]
        finally:
            server.shutdown()
            thread.join()
            server.hang_up(older_than=0)


def _listen(
    address: Address, page: Page, live: Live, deadline_seconds: float, access: Access
) -> _Server:
    try:
        return _Server(address, page, live, deadline_seconds, access)
    except OSError as e:
        host, port = address
        raise UsageError(
            f"cannot serve metrics on {host}:{port}: {e.strerror or e}; set `listen` to another "
            f"address, or find what holds this one with: ss -ltnp 'sport = :{port}'"
        ) from e


class _Server(socketserver.ThreadingTCPServer):
    """Not http.server's: that one looks its own name up, and waits when no resolver answers."""

    allow_reuse_address = True  # restart while old connections linger
    request_queue_size = CONNECTIONS
    server_address: Address

    def __init__(
        self, address: Address, page: Page, live: Live, deadline_seconds: float, access: Access
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.page, self.live, self.access = page, live, access
        self.answers = {
            path: _Answer(asset.body, asset.content_type) for path, asset in assets().items()
        }
        """Those that never change, by path."""

        self._deadline = deadline_seconds
        self._open: dict[socket.socket, float] = {}
        """Connections being served, and since when."""
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if len(self._open) >= CONNECTIONS:
            # Fits into the socket's empty buffer. To a client of TLS it is a handshake that fails.
            request.send(_BUSY)
            self.shutdown_request(request)
            return
        request = self.access.secured(request)
        self._open[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Called by ``serve_forever`` twice a second."""
        self.hang_up(older_than=self._deadline)

    def hang_up(self, older_than: float) -> None:
        """Wake the threads of connections that have been served longer than this, in seconds."""
        before = time.monotonic() - older_than
        for connection in [c for c, since in self._open.copy().items() if since <= before]:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:  # it has just ended by itself
                log.debug("connection already closed")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of ours; anything else shows its traceback."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


@dataclass(frozen=True, slots=True)
class _Answer:
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    status: HTTPStatus = HTTPStatus.OK


def _metrics(server: _Server, accept: str) -> _Answer:
    """A page that no longer changes looks like a quiet node, so a stale one is refused: the scrape
    fails, and ``up`` says 0."""
    if server.page.problem():
        return _health(server, accept)
    form = negotiate(accept)
    return _Answer(server.page.read(form), form.content_type)


def _health(server: _Server, accept: str) -> _Answer:
    problem = server.page.problem()
    if problem:
        return _Answer(f"{problem}\n".encode(), status=HTTPStatus.SERVICE_UNAVAILABLE)
    return _Answer(b"ok\n")


def _live(server: _Server, accept: str) -> _Answer:
    body = server.live.read()
    if not body:
        return _Answer(b"the agent is starting, or stuck\n", status=HTTPStatus.SERVICE_UNAVAILABLE)
    return _Answer(body, "application/json")


_ROUTES: dict[str, Callable[[_Server, str], _Answer]] = {
    "/healthz": _health,
    "/live.json": _live,
    "/metrics": _metrics,
}


_FOR_PROBES = ("/healthz",)
"""Answered without a password: a kubelet has none, and they tell nothing of the engines."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "tailtrace"
    sys_version = ""
    error_message_format = "%(code)d %(message)s\n"
    error_content_type = "text/plain; charset=utf-8"

    def do_GET(self) -> None:
        answer = self._answer()
        self._head(answer)
        self.wfile.write(answer.body)

    def do_HEAD(self) -> None:
        self._head(self._answer())

    def _answer(self) -> _Answer:
        path = self.path.partition("?")[0]
        if path not in _FOR_PROBES and not self._is_allowed():
            return _Answer(b"name and password, please\n", status=HTTPStatus.UNAUTHORIZED)
        if route := _ROUTES.get(path):
            return route(self.server, self.headers.get("Accept", ""))
        not_found = _Answer(b"not found\n", status=HTTPStatus.NOT_FOUND)
        return self.server.answers.get(path, not_found)

    def _is_allowed(self) -> bool:
        return self.server.access.allows(self.headers.get("Authorization", ""))

    def _head(self, answer: _Answer) -> None:
        self.send_response(answer.status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", 'Basic realm="tailtrace", charset="UTF-8"')
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)
