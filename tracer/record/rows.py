"""
The rows of a recording as plain data.

The file may be anybody's: every name is made fit to be shown, every number is within its bounds or
refused with ValueError.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tracer.catalog import CAUSES, DESCHEDULES, LOSSES, SCOPES
from tracer.kernel.btf import wire
from tracer.ledger.books import CAUSE_AT
from tracer.ledger.counts import EVENT_AT
from tracer.ledger.histogram import BUCKETS
from tracer.ledger.profile import Profile
from tracer.model import Stall
from tracer.record.cells import unpack, unpack_profile
from tracer.record.meta import Meta
from tracer.record.window import Answer, RecordedOutlier, RecordedStep, StepSums, Window
from tracer.targets.text import visible

_NAME = 256  # characters of a name that are kept
_LINE = 4096  # the same, of what a command said
_LATEST = 1 << 63  # ns, by any clock: 292 years
_MAX_CPUS = wire().enum("limits")["MAX_CPUS"]
_REASONS = frozenset(loss.name for loss in LOSSES)


def read_meta(values: Mapping[str, str]) -> Meta:
    """``values`` in JSON, by the field's name."""
    about = {key: msgspec.json.decode(value) for key, value in values.items()}
    configuration = about.pop("configuration", "")  # is written out, never shown
    return msgspec.convert(_shown(about) | {"configuration": configuration}, Meta)


def read_window(database: sqlite3.Connection, number: int, meta: Meta, version: int) -> Window:
    def rows(columns: str, table: str) -> list[Any]:
        sql = f"SELECT {columns} FROM {table} WHERE window = ? ORDER BY rowid"
        return database.execute(sql, (number,)).fetchall()

    started_ns, ended_ns, unix_ns, steps = database.execute(
        "SELECT started_ns, ended_ns, unix_ns, steps FROM window WHERE number = ?", (number,)
    ).fetchone()
    if not 0 <= started_ns < ended_ns or steps < 0:
        raise ValueError(f"window {number} from {started_ns} to {ended_ns} with {steps} steps")
    blamed = "victim, aggressor, cause, seconds"
    sums = "tenant, step, is_stage, seconds, helper_seconds, profile"
    return Window(
        started_ns=started_ns,
        ended_ns=ended_ns,
        unix_ns=unix_ns,
        steps=steps,
        by_step={
            (_shown(tenant), _shown(step)): _sums(meta, *rest)
            for tenant, step, *rest in rows(sums, "step")
        },
        queue_waits={
            _shown(tenant): unpack_profile(profile, 1)
            for tenant, profile in rows("tenant, profile", "queue_wait")
        },
        deschedules={
            _shown(tenant): _histograms(meta, histograms)
            for tenant, histograms in rows("tenant, histograms", "deschedule")
        },
        outside={
            _shown(tenant): _seconds(seconds)
            for tenant, seconds in rows("tenant, seconds", "outside")
        },
        blame={
            (_shown(victim), _shown(aggressor), _one_of(CAUSE_AT, cause)): seconds
            for victim, aggressor, cause, seconds in rows(blamed, "blame")
        },
        events={
            (_shown(tenant), _shown(step), _one_of(EVENT_AT, event)): count
            for tenant, step, event, count in rows("tenant, step, event, count", "event")
        },
        slowest=[_slow_step(step) for (step,) in rows("step", "slow_step")],
        outliers=[
            _outlier(outlier) for (outlier,) in (rows("outlier", "outlier") if version > 1 else [])
        ],
        answers={
            _shown(command): _answer(answer)
            for command, answer in (rows("command, answer", "answer") if version > 1 else [])
        },
        stalls=tuple(_stall(stall) for (stall,) in rows("stall", "stall")) if version > 1 else (),
        lost={_one_of(_REASONS, reason): n for reason, n in rows("reason, count", "lost")},
    )


def _sums(
    meta: Meta, is_stage: int, seconds: str, helper_seconds: float, profile: bytes
) -> StepSums:
    recorded = unpack_profile(profile, len(meta.causes))
    ns = np.zeros((len(recorded.cell), len(CAUSES)), np.int64)
    ns[:, [CAUSE_AT[_one_of(CAUSE_AT, cause)] for cause in meta.causes]] = recorded.ns
    return StepSums(
        is_stage=bool(is_stage),
        profile=Profile(recorded.cell, recorded.count, ns),
        seconds=_seconds(seconds),
        helper_seconds=helper_seconds,
    )


def _histograms(meta: Meta, blob: bytes) -> NDArray[np.int64]:
    table = unpack(blob, BUCKETS + 1, len(meta.deschedules))
    if len(table) != len(meta.deschedules) or (table < 0).any():
        raise ValueError("histograms of deschedules that are none")
    histograms = np.zeros((len(DESCHEDULES), BUCKETS + 1), np.int64)
    histograms[[DESCHEDULES.index(cause) for cause in meta.deschedules]] = table
    return histograms


def _seconds(text: str) -> NDArray[np.float64]:
    seconds = np.zeros(len(CAUSES))
    for cause, s in msgspec.json.decode(text, type=dict[str, float]).items():
        seconds[CAUSE_AT[_one_of(CAUSE_AT, cause)]] = s
    return seconds


def _slow_step(text: str) -> RecordedStep:
    step = msgspec.convert(_shown(msgspec.json.decode(text)), RecordedStep)
    for cause in [*step.ns, *([step.worst.cause] if step.worst else [])]:
        _one_of(CAUSE_AT, cause)
    for event in step.events:
        _one_of(EVENT_AT, event)
    return step


def _outlier(text: str) -> RecordedOutlier:
    outlier = msgspec.convert(_shown(msgspec.json.decode(text)), RecordedOutlier)
    _one_of(CAUSE_AT, outlier.wait.cause)
    return outlier


def _answer(text: str) -> Answer:
    return msgspec.convert(_shown(msgspec.json.decode(text), _LINE), Answer)


def read_answers(database: sqlite3.Connection) -> dict[str, Answer]:
    """The last one of each command."""
    latest = "SELECT command, answer, max(window) FROM answer GROUP BY command"
    return {_shown(command): _answer(answer) for command, answer, _ in database.execute(latest)}


def _stall(text: str) -> Stall:
    stall = msgspec.convert(_shown(msgspec.json.decode(text)), Stall)
    _one_of(SCOPES, stall.scope)
    if not 0 <= stall.begin_ns <= stall.end_ns - stall.stolen_ns < _LATEST or stall.stolen_ns < 0:
        raise ValueError(f"a stall from {stall.begin_ns} to {stall.end_ns}")
    if max(map(len, (stall.cpus, stall.running, stall.hit))) > _MAX_CPUS:
        raise ValueError(f"a stall of more than {_MAX_CPUS} CPUs")
    return stall


def _one_of(known: Collection[str], name: str) -> str:
    if name not in known:
        raise ValueError(f"{name!r} is not known to this version")
    return name


def _shown(value: Any, most: int = _NAME) -> Any:
    """The same with every text in it fit to be shown, of at most so many characters."""
    if isinstance(value, str):
        return visible(value.encode(errors="backslashreplace"), most)
    if isinstance(value, dict):
        return {_shown(key, most): _shown(each, most) for key, each in value.items()}
    if isinstance(value, list):
        return [_shown(each, most) for each in value]
    return value
