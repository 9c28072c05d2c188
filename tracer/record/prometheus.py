"""
Reads series from a Prometheus server by its HTTP API.

The server is a stranger's: what it says is bounded and checked, and a part of the data is none.
"""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tracer.errors import UnavailableError, UsageError
from tracer.targets.text import visible

_MOST_BYTES = 256 << 20
_CHUNK = 1 << 20
_SHOWN = 200  # characters of what a server says is wrong
_REFUSED = (400, 422)  # the query is wrong; else the server is


@dataclass(frozen=True, slots=True)
class Series:
    labels: Mapping[str, str]
    values: Mapping[int, float]
    """By the time of evaluation, in seconds since 1970."""


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Data(msgspec.Struct):
    result: list[_Series]


class _Answer(msgspec.Struct):
    status: str
    data: _Data | None = None
    error: str = ""
    warnings: list[str] = []


class Prometheus:
    def __init__(self, url: str, timeout: float) -> None:
        """
        :param url: such as ``http://prometheus:9090``, with the path before ``/api``, if any
        :param timeout: seconds that an answer may take
        """
        if not _is_address(url):
            raise UsageError(f"{url}: is no address of a Prometheus; give http://HOST:PORT")
        self._url, self._timeout = url.rstrip("/"), timeout

    def query_range(self, query: str, start: int, end: int, step: int) -> Sequence[Series]:
        """
        From ``start`` to ``end``, both included, every ``step`` seconds.

        Raises UnavailableError when the server cannot be reached, is too slow or tells a part only,
        UsageError when it refuses the query or is something else.
        """
        asked = {"query": query, "start": start, "end": end, "step": step}
        asked["timeout"] = f"{self._timeout:g}s"
        answer = self._answer(f"query_range?{urllib.parse.urlencode(asked)}")
        if answer.status != "success" or answer.data is None:
            raise UsageError(f"{self._url}: refuses {query}: {_shown(answer.error)}")
        if answer.warnings:
            raise UnavailableError(
                f"{self._url}: tells a part of the data only: {_shown(answer.warnings[0])}; ask "
                "when all of it can be told"
            )
        return [
            Series(
                {_shown(name): _shown(value) for name, value in of.metric.items()},
                {round(at): float(value) for at, value in of.values if value != "NaN"},
            )
            for of in answer.data.result
        ]

    def _answer(self, path: str) -> _Answer:
        try:
            body = self._body(f"{self._url}/api/v1/{path}")
            return msgspec.json.decode(body, type=_Answer)
        except (TimeoutError, urllib.error.URLError, http.client.HTTPException, OSError) as e:
            raise self._unavailable(e) from e
        except (msgspec.MsgspecError, ValueError, RecursionError) as e:
            raise UsageError(f"{self._url}: is no Prometheus: its answer is none") from e

    def _body(self, url: str) -> bytes:
        """Of the answer, or of a refusal in JSON."""
        deadline = time.monotonic() + self._timeout
        try:
            reply = urllib.request.urlopen(url, timeout=self._timeout)
        except urllib.error.HTTPError as refused:
            if refused.code not in _REFUSED:
                raise
            reply = refused
        body = bytearray()
        with reply:
            while chunk := reply.read1(_CHUNK):
                body += chunk
                if time.monotonic() > deadline:
                    raise TimeoutError
                if len(body) > _MOST_BYTES:
                    raise UsageError(
                        f"{self._url}: answers with more than {_MOST_BYTES >> 20} MiB; select less"
                    )
            if reply.length:  # of what was announced, the rest
                raise http.client.IncompleteRead(bytes(body), reply.length)
        return bytes(body)

    def _unavailable(self, error: Exception) -> UnavailableError:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            why = f"no answer within {self._timeout:g} s; ask for less, or give --timeout"
        elif isinstance(error, urllib.error.HTTPError):
            why = f"answers {error.code} {_shown(str(error.reason))}; ask when it is well"
        else:
            told = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            why = f"cannot be reached: {_shown(told)}"
        return UnavailableError(f"{self._url}: {why}")


def _shown(text: Any) -> str:
    return visible(str(text).encode(errors="backslashreplace"), _SHOWN)


def _is_address(url: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no port, or no address of IPv6
        return False
