"""
The kubelet's ``/pods``: one bounded request over TLS, with the service account's token.

It asks for the right ``nodes/pods`` (Kubernetes 1.33 on), never ``nodes/proxy``, which would allow
exec in every container as well.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from enum import StrEnum
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from threading import Timer

from tracer import config
from tracer.errors import TailtraceError, UsageError
from tracer.targets.pods import Pod, parse
from tracer.targets.text import visible

DEADLINE_SECONDS = 5.0
"""For a whole request, however slowly its bytes trickle."""

_MAX_ANSWER = 16 << 20  # 110 pods of 20 kB each are a seventh of it
_MAX_TOKEN = 1 << 16
_MAX_SHOWN = 200  # characters of what a kubelet says in its defence


_WAY_OUT = {
    401: "; name the file of a token that the cluster knows as kubelet.token_file",
    403: "; let the service account get nodes/pods",
}
"""By status."""


class Reason(StrEnum):
    """Why nothing is known of pods. Names are exported as they are."""

    CREDENTIALS = "credentials"
    UNREACHABLE = "unreachable"
    UNTRUSTED = "untrusted"
    REFUSES = "refuses"
    IMPLAUSIBLE = "implausible"


class Refused(TailtraceError):  # noqa: N818 - a state of the kubelet, not a fault of ours
    """The kubelet did not tell, or is not believed, for a reason that has a name."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Kubelet:
    """The kubelet of this node."""

    def __init__(
        self,
        settings: config.Kubelet,
        environment: Mapping[str, str] = os.environ,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        """Raises UsageError for a variable that the environment does not have."""
        self._host = _resolved("host", settings.host, environment)
        self._name = _resolved("server_name", settings.server_name, environment) or self._host
        self._settings = settings
        self._deadline = deadline_seconds

    def __str__(self) -> str:
        return f"the kubelet at {self._host} port {self._settings.port}"

    def pods(self) -> dict[str, Pod]:
        """The pods of this node by uid. Raises Refused."""
        # Both files are read each time: tokens are renewed within the hour.
        token = _token(Path(self._settings.token_file))
        with self._connection(_trusting(Path(self._settings.ca_file))) as connection:
            headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
            connection.request("GET", "/pods", headers=headers)
            answer = self._body(connection.getresponse())
        try:
            return parse(answer)
        except ValueError as e:
            raise Refused(
                Reason.IMPLAUSIBLE,
                f"{self} told no list of pods: {visible(str(e).encode(), _MAX_SHOWN)}",
            ) from e

    @contextmanager
    def _connection(self, context: ssl.SSLContext) -> Iterator[HTTPConnection]:
        """A connection to whom our certificates vouch for; it is cut when the time is over."""
        address = self._host, self._settings.port
        with (
            self._refusing(),
            closing(socket.create_connection(address, self._deadline)) as plain,
            _cut_after(self._deadline, plain),
            closing(context.wrap_socket(plain, server_hostname=self._name)) as secure,
        ):
            connection = HTTPConnection(self._host, self._settings.port)
            connection.sock = secure
            yield connection

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """What the system and the libraries say, as a reason."""
        try:
            yield
        except ssl.SSLCertVerificationError as e:
            what = (
                f"{self} is not who it should be: {e.verify_message}; see kubelet.ca_file and "
                "kubelet.server_name"
            )
            raise Refused(Reason.UNTRUSTED, what) from e
        except (OSError, HTTPException, ValueError) as e:  # ValueError: no name for DNS or TLS
            what = getattr(e, "strerror", None) or str(e) or type(e).__name__
            words = visible(what.strip().encode(), _MAX_SHOWN)
            raise Refused(Reason.UNREACHABLE, f"{self} does not answer: {words}") from e

    def _body(self, response: HTTPResponse) -> bytes:
        body = response.read(_MAX_ANSWER + 1)
        if response.status != 200:
            words = visible(body.strip() or response.reason.encode(), _MAX_SHOWN)
            said = f"{self} refuses, status {response.status}: {words}"
            raise Refused(Reason.REFUSES, said + _WAY_OUT.get(response.status, ""))
        if len(body) > _MAX_ANSWER:
            raise Refused(Reason.IMPLAUSIBLE, f"{self} told more than {_MAX_ANSWER} bytes")
        return body


def _token(path: Path) -> str:
    try:
        with path.open("rb") as file:
            token = file.read(_MAX_TOKEN).strip().decode("ascii", "replace")
    except OSError as e:
        raise Refused(Reason.CREDENTIALS, f"{path}: {e.strerror}") from e
    if not token or not token.isascii() or not token.isprintable():
        raise Refused(Reason.CREDENTIALS, f"{path}: no token of a service account")
    return token


def _trusting(authorities: Path) -> ssl.SSLContext:
    # Not the default context: from Python 3.13 on that one refuses clusters' own authorities, whose
    # certificates lack extensions that RFC 5280 wants.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(authorities)
    except ssl.SSLError as e:
        what = f"{authorities}: no certificates in PEM form"
        raise Refused(Reason.CREDENTIALS, what) from e
    except OSError as e:
        raise Refused(Reason.CREDENTIALS, f"{authorities}: {e.strerror}") from e
    return context


def _resolved(key: str, value: str, environment: Mapping[str, str]) -> str:
    """``$NAME`` stands for a variable of the environment."""
    if not value.startswith("$"):
        return value
    found = environment.get(value[1:], "")
    if not found:
        raise UsageError(
            f"kubelet.{key} is {value!r}, which the environment does not have; set the variable "
            "from the pod's fields (status.hostIP, spec.nodeName), or give the value itself"
        )
    return found


@contextmanager
def _cut_after(seconds: float, connection: socket.socket) -> Iterator[None]:
    """Wake whoever waits for the connection when the time is over."""
    # The timer has a descriptor of its own: wrapping a socket takes the descriptor away from it.
    with closing(connection.dup()) as own:
        timer = Timer(seconds, _cut, [own])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # the other side was faster
        return
