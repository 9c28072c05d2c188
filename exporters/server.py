"""
The agent's port: ``/metrics``, ``/healthz`` and an index. Nothing that a client does, or fails to
do, holds the agent up: a few connections at a time, one request each, all with a deadline.
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

from exporters.prometheus import Page, negotiate
from tracer.errors import UsageError

log = logging.getLogger(__name__)

Address = tuple[str, int]
"""Host and port. Port 0 lets the system choose."""

CONNECTIONS = 8
"""Served at the same time; two Prometheus servers and a person need three."""

DEADLINE_SECONDS = 10.0
"""For a whole request, however slowly its bytes trickle. Prometheus' own default timeout."""

_BUSY = b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'",
    "X-Content-Type-Options": "nosniff",
}


@contextmanager
def serving(
    address: Address, page: Page, deadline_seconds: float = DEADLINE_SECONDS
) -> Iterator[Address]:
    """
    Serve the page until the block is left. Yields the address that it is served at.

    Raises UsageError when the address cannot be had.
    """
    with _listen(address, page, deadline_seconds) as server:
        thread = threading.Thread(target=server.serve_forever, name="exporter", daemon=True)
        thread.start()
        try:
            yield server.server_address[:2]
        finally:
            server.shutdown()
            thread.join()
            server.hang_up(older_than=0)


def _listen(address: Address, page: Page, deadline_seconds: float) -> _Server:
    try:
        return _Server(address, page, deadline_seconds)
    except OSError as e:
        host, port = address
        raise UsageError(
            f"cannot serve metrics on {host}:{port}: {e.strerror or e}; set `listen` to another "
            f"address, or find what holds this one with: ss -ltnp 'sport = :{port}'"
        ) from e


class _Server(socketserver.ThreadingTCPServer):
    """Not http.server's: that one looks its own name up, and waits when no resolver answers."""

    allow_reuse_address = True  # restart while old connections linger
    server_address: Address

    def __init__(self, address: Address, page: Page, deadline_seconds: float) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.page = page
        self._deadline = deadline_seconds
        self._open: dict[socket.socket, float] = {}
        """Connections being served, and since when."""
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if len(self._open) >= CONNECTIONS:
            request.send(_BUSY)  # fits into the socket's empty buffer
            self.shutdown_request(request)
            return
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


def _metrics(page: Page, accept: str) -> _Answer:
    """A page that no longer changes looks like a quiet node, so a stale one is refused: the scrape
    fails, and ``up`` says 0."""
    if page.problem():
        return _health(page, accept)
    form = negotiate(accept)
    return _Answer(page.read(form), form.content_type)


def _health(page: Page, accept: str) -> _Answer:
    problem = page.problem()
    if problem:
        return _Answer(f"{problem}\n".encode(), status=HTTPStatus.SERVICE_UNAVAILABLE)
    return _Answer(b"ok\n")


def _index(page: Page, accept: str) -> _Answer:
    return _Answer(
        b"tailtrace\n\n/metrics   Prometheus text and OpenMetrics\n/healthz   liveness\n"
    )


_ROUTES: dict[str, Callable[[Page, str], _Answer]] = {
    "/": _index,
    "/healthz": _health,
    "/metrics": _metrics,
}


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
        route = _ROUTES.get(self.path.partition("?")[0])
        if route is None:
            return _Answer(b"not found\n", status=HTTPStatus.NOT_FOUND)
        return route(self.server.page, self.headers.get("Accept", ""))

    def _head(self, answer: _Answer) -> None:
        self.send_response(answer.status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)
