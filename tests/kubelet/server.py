"""A kubelet for tests: a TLS server of its own, which answers as it is told, truly or not."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import trustme

from tracer import config

TOKEN = "eyJhbGciOi.test.token"


class TestKubelet(ThreadingHTTPServer):
    """Answers with ``status`` and ``body``, when the token is right; hangs when told to."""

    __test__ = False
    daemon_threads = True

    def __init__(self, directory: Path, name: str = "127.0.0.1") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        authority = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name).configure_cert(context)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self._directory = directory
        authority.cert_pem.write_to_path(directory / "ca.crt")
        (directory / "token").write_text(TOKEN + "\n")
        self.status, self.body = 200, b""
        self.headers: dict[str, str] = {}
        self.chunks: list[bytes] | None = None
        """Sent one each 50 ms instead of an answer, for ever the last."""

        self.requests: list[str] = []
        self.stopped = threading.Event()

    def settings(self, **changes: str | int) -> config.Kubelet:
        defaults: dict[str, str | int] = {
            "host": "127.0.0.1",
            "port": self.server_address[1],
            "ca_file": str(self._directory / "ca.crt"),
            "token_file": str(self._directory / "token"),
        }
        return config.Kubelet(**(defaults | changes))


class _Handler(BaseHTTPRequestHandler):
    server: TestKubelet

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        if self.server.chunks is not None:
            self._trickle(self.server.chunks)
        elif self.headers["Authorization"] != f"Bearer {TOKEN}":
            self._answer(401, b"Unauthorized")
        else:
            self._answer(self.server.status, self.server.body)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _trickle(self, chunks: list[bytes]) -> None:
        for chunk in chunks:
            self.wfile.write(chunk)
        while chunks and not self.server.stopped.wait(0.05):
            self.wfile.write(chunks[-1])
        self.server.stopped.wait()

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:  # the client gave up, as it should
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Tests look at ``requests``."""


@contextmanager
def running_kubelet(directory: Path, name: str = "127.0.0.1") -> Iterator[TestKubelet]:
    with TestKubelet(directory, name) as kubelet:
        # Polled often, because its shutdown waits for the next look.
        thread = threading.Thread(target=kubelet.serve_forever, args=[0.02], daemon=True)
        thread.start()
        try:
            yield kubelet
        finally:
            kubelet.stopped.set()
            kubelet.shutdown()
            thread.join()
