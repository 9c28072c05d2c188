"""
A guest's CLOCK_MONOTONIC in terms of this machine's, by question and answer over a serial port.

The guest read its clock at some moment between our question and its answer. The quickest of many
exchanges bounds the difference best: half its round trip is the uncertainty (Cristian 1989).
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass

QUESTION = struct.Struct("=Q")  # serial number of the question
ANSWER = struct.Struct("=QQ")  # the question's serial number; guest CLOCK_MONOTONIC in ns

_EXCHANGES = 20


@dataclass(frozen=True)
class Exchange:
    """One question and answer; all in ns, two on this machine's clock, one on the guest's."""

    asked_ns: int
    guest_ns: int
    answered_ns: int


@dataclass(frozen=True)
class ClockMap:
    """guest = host + offset, wrong by at most the uncertainty; all in ns."""

    offset_ns: int
    uncertainty_ns: int

    def to_guest(self, host_ns: int) -> int:
        return host_ns + self.offset_ns


def clock_map(exchanges: Iterable[Exchange]) -> ClockMap:
    """The map that the quickest exchange gives. At least one exchange is needed."""
    best = min(exchanges, key=lambda e: e.answered_ns - e.asked_ns)
    middle_ns = (best.asked_ns + best.answered_ns) // 2
    half_trip_ns = -(-(best.answered_ns - best.asked_ns) // 2)
    return ClockMap(best.guest_ns - middle_ns, half_trip_ns)


def read_guest_clock(port: socket.socket) -> ClockMap:
    """Asks the guest's end of the port. Raises TimeoutError or ConnectionError without answer."""
    _discard_late_answers(port)
    return clock_map(_ask(port, number) for number in range(_EXCHANGES))


def _ask(port: socket.socket, number: int) -> Exchange:
    asked_ns = time.monotonic_ns()
    port.sendall(QUESTION.pack(number))
    answer = _receive(port, ANSWER.size)
    answered_ns = time.monotonic_ns()
    answered_number, guest_ns = ANSWER.unpack(answer)
    if answered_number != number:
        raise ConnectionError(f"guest clock: asked {number}, answered {answered_number}")
    return Exchange(asked_ns, guest_ns, answered_ns)


def _discard_late_answers(port: socket.socket) -> None:
    timeout = port.gettimeout()
    port.setblocking(False)
    try:
        while port.recv(4096):
            pass
    except BlockingIOError:
        pass
    finally:
        port.settimeout(timeout)


def _receive(port: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = port.recv(size - len(received))
        if not part:
            raise ConnectionError("guest clock: the emulator closed the port")
        received += part
    return received
