"""
Timelines for https://ui.perfetto.dev: spans on named tracks as a file of Perfetto's trace packets.

What overlaps on one track without being inside of another is drawn on several tracks of the same
name, which the viewer shows as one. So whatever the spans are, slices nest.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracer.errors import TailtraceError, UnavailableError, UsageError
from tracer.model import Span, Track

if TYPE_CHECKING:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

MOST_LANES = 32
"""Tracks of the same name: what overlaps more often is left out, and counted."""

_MONOTONIC, _REALTIME = 3, 1  # BuiltinClock in builtin_clock.proto
_SEQUENCE = 1
_CLEARED, _NEEDS_STATE = 1, 2  # TracePacket.SequenceFlags


@dataclass(slots=True)
class _Lane:
    """One of the tracks of a name."""

    uuid: int
    ended_ns: int = 0
    """When the last slice that was closed ended."""

    open: list[int] = field(default_factory=list)
    """Ends of the slices that are open, the innermost last."""

    @property
    def until_ns(self) -> float:
        return self.open[-1] if self.open else math.inf


class PerfettoTrace:
    """A context manager around a new file."""

    def __init__(self, path: Path, monotonic_ns: int, unix_ns: int) -> None:
        """
        Raises UnavailableError without the ``perfetto`` package, UsageError where ``path`` exists
        or cannot be made.

        :param unix_ns: the wall clock when the monotonic one showed ``monotonic_ns``
        """
        self._path, self._pb = path, _messages()
        self.drawn = self.left_out = 0
        self._uuids, self._groups = count(1), dict[Track, int]()
        self._lanes: dict[Track, list[_Lane]] = {}
        self._names: dict[str, int] = {}
        self._keys: dict[str, int] = {}
        try:
            self._file = path.open("xb")
        except OSError as e:
            raise UsageError(f"{path}: cannot be made: {e.strerror}; give a new file") from e
        self._write([self._clocks(monotonic_ns, unix_ns)])

    def __enter__(self) -> PerfettoTrace:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # a full disk, which was told when it was written to
            self._file.close()

    def add(self, spans: Mapping[Track, Sequence[Span]]) -> None:
        """
        By track, in any order; those added before stay where they are.

        Raises TailtraceError when they cannot be written.
        """
        packets: list[pb.TracePacket] = []
        for track, of_track in spans.items():
            for span in sorted(of_track, key=lambda span: (span.begin_ns, -span.end_ns)):
                self._add(track, span, packets)
            for lane in self._lanes.get(track, []):
                packets += self._ends(lane, math.inf)
        self._write(packets)

    def _add(self, track: Track, span: Span, packets: list[pb.TracePacket]) -> None:
        lane = self._lane(track, span, packets)
        if lane is None:
            self.left_out += 1
            return
        packets.append(self._begin(lane.uuid, span))
        lane.open.append(max(span.begin_ns, span.end_ns))
        self.drawn += 1

    def _clocks(self, monotonic_ns: int, unix_ns: int) -> pb.TracePacket:
        packet = self._pb.TracePacket(
            trusted_packet_sequence_id=_SEQUENCE, sequence_flags=_CLEARED, timestamp=monotonic_ns
        )
        packet.trace_packet_defaults.timestamp_clock_id = _MONOTONIC
        packet.timestamp_clock_id = _MONOTONIC
        packet.clock_snapshot.primary_trace_clock = _MONOTONIC
        packet.clock_snapshot.clocks.add(clock_id=_MONOTONIC, timestamp=monotonic_ns)
        packet.clock_snapshot.clocks.add(clock_id=_REALTIME, timestamp=unix_ns)
        return packet

    def _lane(self, track: Track, span: Span, packets: list[pb.TracePacket]) -> _Lane | None:
        """A track of this name on which the span is within what is open, or after everything."""
        lanes = self._lanes.setdefault(track, [])
        for lane in lanes:
            packets += self._ends(lane, span.begin_ns)
            if span.begin_ns >= lane.ended_ns and span.end_ns <= lane.until_ns:
                return lane
        if len(lanes) >= MOST_LANES:
            return None
        group = self._group(track, packets)
        lanes.append(_Lane(self._described(track, packets) if lanes else group))
        return lanes[-1]

    def _ends(self, lane: _Lane, until_ns: float) -> Iterator[pb.TracePacket]:
        """Of all slices that have ended by then."""
        while lane.open and lane.open[-1] <= until_ns:
            lane.ended_ns = lane.open.pop()
            yield self._event(
                lane.ended_ns, type=self._pb.TrackEvent.TYPE_SLICE_END, track_uuid=lane.uuid
            )

    def _group(self, track: Track, packets: list[pb.TracePacket]) -> int:
        """The track of this name that others are in; a new one the first time. 0 for the root."""
        if track and track not in self._groups:
            self._groups[track] = self._described(track, packets)
        return self._groups.get(track, 0)

    def _described(self, track: Track, packets: list[pb.TracePacket]) -> int:
        """A new track of this name."""
        parent, uuid = self._group(track[:-1], packets), next(self._uuids)
        descriptor = self._pb.TrackDescriptor(uuid=uuid, name=track[-1])
        if parent:
            descriptor.parent_uuid = parent
        packets.append(
            self._pb.TracePacket(trusted_packet_sequence_id=_SEQUENCE, track_descriptor=descriptor)
        )
        return uuid

    def _begin(self, uuid: int, span: Span) -> pb.TracePacket:
        new = self._pb.InternedData()
        name = _number(self._names, span.name, new.event_names)
        packet = self._event(
            span.begin_ns,
            type=self._pb.TrackEvent.TYPE_SLICE_BEGIN,
            track_uuid=uuid,
            name_iid=name,
        )
        for key, value in span.details.items():
            kind = {str: "string_value", int: "uint_value", float: "double_value"}[type(value)]
            known = _number(self._keys, key, new.debug_annotation_names)
            packet.track_event.debug_annotations.add(name_iid=known, **{kind: value})
        if new.ByteSize():
            packet.interned_data.CopyFrom(new)
        return packet

    def _event(self, at_ns: int, **fields: Any) -> pb.TracePacket:
        return self._pb.TracePacket(
            timestamp=at_ns,
            trusted_packet_sequence_id=_SEQUENCE,
            sequence_flags=_NEEDS_STATE,
            track_event=self._pb.TrackEvent(**fields),
        )

    def _write(self, packets: Sequence[pb.TracePacket]) -> None:
        """A file is a ``Trace``, and so is each part of it."""
        try:
            self._file.write(self._pb.Trace(packet=packets).SerializeToString())
            self._file.flush()
        except OSError as e:
            raise TailtraceError(
                f"{self._path}: drawing has ended: {e.strerror}; what was drawn before is intact"
            ) from e


def _number(known: dict[str, int], name: str, new: Any) -> int:
    """The name's number in this file; ``new`` grows by names that it does not have yet."""
    if name not in known:
        known[name] = len(known) + 1
        new.add(iid=known[name], name=name)
    return known[name]


def _messages() -> Any:
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2  # noqa: PLC0415
    except ImportError as e:
        raise UnavailableError(
            "timelines need the Python package perfetto; pip install 'tailtrace[timeline]'"
        ) from e
    return perfetto_trace_pb2
