"""A summary as an agent gives it, of one kind of steps and one slow step."""

from __future__ import annotations

from tracer import catalog
from tracer.ledger.summary import BlameRow, LongestWait, SlowStep, StepRow, Summary
from tracer.model import Aggressor

MS = 0.001


def by_cause(**ms):
    return {cause.name: ms.get(cause.name, 0) * MS for cause in catalog.CAUSES}


def by_event(**counts):
    return {event.name: float(counts.get(event.name, 0)) for event in catalog.EVENTS}


DECODE = StepRow(
    tenant="chat",
    step="decode",
    is_stage=False,
    count=4711,
    p50=10.2 * MS,
    p99=21.0 * MS,
    p999=31.2 * MS,
    seconds=by_cause(running=46_000, preempted=2_000, net=2_000),
    typical=by_cause(running=9.6, net=0.6),
    tail=by_cause(running=10.0, preempted=18.3, runqueue=2.1, net=0.5),
    tail_count=48,
    events=by_event(fault_minor=4711, fault_major=12),
)
GRPC = Aggressor(name="rl_sampling", pid=70, tid=73, comm="grpc-worker-3", seconds=18.3 * MS)
NGINX = Aggressor(name="nginx", pid=80, tid=80, comm="nginx", seconds=2.1 * MS)
SLOW = SlowStep(
    number=4711,
    parent=0,
    step="decode",
    tenant="chat",
    shares={"chat": 0.75, "batch": 0.25},
    target=1,
    tid=42,
    end_ns=0,
    elapsed=31.2 * MS,
    seconds=by_cause(running=10.1, preempted=18.3, runqueue=2.1, net=0.7),
    median=10.2 * MS,
    typical=by_cause(running=9.6, net=0.6),
    switches=12,
    involuntary=4,
    migrations=1,
    worst=LongestWait(
        cause="preempted", seconds=9.1 * MS, after=14.2 * MS, comm="grpc-worker-3", tid=73
    ),
    aggressors=(GRPC,),
    blame_rest=0.1 * MS,
    helper_wait=0,
    helper_worst=0,
    events=by_event(fault_minor=3),
    usual_events=by_event(fault_minor=1),
)
SUMMARY = Summary(
    seconds=30,
    window_seconds=60,
    steps=4711,
    rows=(DECODE,),
    recent=(),
    blame=(BlameRow(victim="chat", aggressor="rl_sampling", cause="preempted", seconds=1.9),),
    slowest=(SLOW,),
    stalls=(),
    longest_stalls=(),
    outside={},
    lost={},
    cannot_tell={},
    unix_offset_ns=0,
    bare_metal=False,
)
