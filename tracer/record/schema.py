"""The tables of a recording. ``docs/recordings.md`` describes them column by column."""

from __future__ import annotations

APPLICATION_ID = 0x7461696C
"""``tail``: what ``file`` and SQLite tell a recording by."""

VERSION = 2
"""Of the tables and of what is in them. A reader reads its own and, by conversion, those before."""

TABLES = (
    """CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT""",
    """CREATE TABLE window (
    number INTEGER PRIMARY KEY,
    started_ns INTEGER NOT NULL,
    ended_ns INTEGER NOT NULL,
    unix_ns INTEGER NOT NULL,
    steps INTEGER NOT NULL
) STRICT""",
    """CREATE TABLE step (
    window INTEGER NOT NULL REFERENCES window ON DELETE CASCADE,
    tenant TEXT NOT NULL,
    step TEXT NOT NULL,
    is_stage INTEGER NOT NULL,
    count INTEGER NOT NULL,
    seconds TEXT NOT NULL,
    helper_seconds REAL NOT NULL,
    profile BLOB NOT NULL,
    PRIMARY KEY (window, tenant, step)
) STRICT""",
    """CREATE TABLE deschedule (
    window INTEGER NOT NULL REFERENCES window ON DELETE CASCADE,
    tenant TEXT NOT NULL,
    histograms BLOB NOT NULL,
    PRIMARY KEY (window, tenant)
) STRICT""",
    """CREATE TABLE queue_wait (
    window INTEGER NOT NULL REFERENCES window ON DELETE CASCADE,
    tenant TEXT NOT NULL,
    profile BLOB NOT NULL,
    PRIMARY KEY (window, tenant)
) STRICT""",
    """CREATE TABLE outside (
    window INTEGER NOT NULL REFERENCES window ON DELETE CASCADE,
    tenant TEXT NOT NULL,
    seconds TEXT NOT NULL,
    PRIMARY KEY (window, tenant)
) STRICT""",
    """CREATE TABLE blame (
    window INTEGER NOT NULL REFERENCES window ON DELETE CASCADE,
    victim TEXT NOT NULL,
    aggressor TEXT NOT NULL,
    cause TEXT NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (window, victim, aggressor, cause)
) STRICT""",
    """CREATE TABLE event (
    window INTEGER NOT NULL REFERENCES window ON DELETE CASCADE,
    tenant TEXT NOT NULL,
    step TEXT NOT NULL,
    event TEXT NOT NULL,
    count REAL NOT NULL,
    PRIMARY KEY (window, tenant, step, event)
) STRICT""",
    """CREATE TABLE slow_step (
    window INTEGER NOT NULL REFERENCES window ON DELETE CASCADE,
    place INTEGER NOT NULL,
    step TEXT NOT NULL,
    PRIMARY KEY (window, place)
) STRICT""",
    """CREATE TABLE lost (
    window INTEGER NOT NULL REFERENCES window ON DELETE CASCADE,
    reason TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (window, reason)
) STRICT""",
    """CREATE TABLE outlier (
    window INTEGER NOT NULL REFERENCES window ON DELETE CASCADE,
    place INTEGER NOT NULL,
    outlier TEXT NOT NULL,
    PRIMARY KEY (window, place)
) STRICT""",
    """CREATE TABLE answer (
    command TEXT NOT NULL,
    window INTEGER NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (command, window)
) STRICT""",
    """CREATE TABLE stall (
    window INTEGER NOT NULL REFERENCES window ON DELETE CASCADE,
    place INTEGER NOT NULL,
    stall TEXT NOT NULL,
    PRIMARY KEY (window, place)
) STRICT""",
)

TABLES_OF = {1: TABLES[:-3], VERSION: TABLES}
"""By the version of the schema."""
