"""Reads a trace back with Perfetto's own classes, as its viewer does."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb


@dataclass
class Slice:
    name: str
    begin_ns: int
    end_ns: int = 0
    details: dict[str, object] = field(default_factory=dict)
    depth: int = 0


def read(path):
    """Track's names from the outermost group on -> slices of each track of these names."""
    trace = pb.Trace.FromString(path.read_bytes())
    names, keys, tracks = {}, {}, {}
    slices, stacks = defaultdict(list), defaultdict(list)
    events = []
    for packet in trace.packet:
        names |= {each.iid: each.name for each in packet.interned_data.event_names}
        keys |= {each.iid: each.name for each in packet.interned_data.debug_annotation_names}
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            events.append((packet.timestamp, packet.track_event))
    for at_ns, event in sorted(events, key=lambda each: each[0]):  # stable, as the viewer's
        stack = stacks[event.track_uuid]
        if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            details = {keys[a.name_iid]: _value(a) for a in event.debug_annotations}
            stack.append(Slice(names[event.name_iid], at_ns, 0, details, len(stack)))
            slices[event.track_uuid].append(stack[-1])
        else:
            stack.pop().end_ns = at_ns
    assert not any(stacks.values()), "slices that never end"
    by_name = defaultdict(list)
    for uuid, of_track in slices.items():
        by_name[_names(tracks, uuid)].append(of_track)
    return dict(by_name)


def _names(tracks, uuid):
    track = tracks[uuid]
    assert track.name, "a track without a name"
    return (*(_names(tracks, track.parent_uuid) if track.parent_uuid else ()), track.name)


def _value(annotation):
    return getattr(annotation, annotation.WhichOneof("value"))
