"""The file of the history: its tables, and how files of earlier versions become such ones."""

from __future__ import annotations

import sqlite3

VERSION = 2

_CLUSTERS = """
CREATE TABLE clusters (
    id INTEGER PRIMARY KEY, cluster_id TEXT NOT NULL, name TEXT NOT NULL, since_ms INTEGER NOT NULL,
    instead_of TEXT NOT NULL,
    measured_ms INTEGER, succeeded_ms INTEGER, failing_ms INTEGER
);
"""
_GROUPS = """
CREATE TABLE groups (
    id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL, name TEXT NOT NULL, is_gone INTEGER NOT NULL,
    UNIQUE (cluster, name)
);
"""
_TABLES = f"""
{_CLUSTERS}
{_GROUPS}
CREATE TABLE samples (
    id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, of_group INTEGER NOT NULL, state TEXT, members INTEGER, lag INTEGER,
    lag_ms INTEGER, committed INTEGER, progress_ms INTEGER
);
CREATE INDEX samples_of_group ON samples (of_group, at_ms);
CREATE TABLE changes (
    id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, of_group INTEGER NOT NULL, what TEXT NOT NULL, member TEXT,
    before TEXT, after TEXT
);
CREATE INDEX changes_of_group ON changes (of_group, at_ms);
CREATE TABLE polls (id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, cluster TEXT NOT NULL, problem TEXT);
CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
"""
"""A cluster has the label ``name`` since ``since_ms``, and the cluster with the id ``instead_of`` had it before. Of one
from version 1 the id isn't known: '' until its next poll. Its groups are gone until a poll finds them again.
"""

_FROM_1 = f"""
{_CLUSTERS}
INSERT INTO clusters (cluster_id, name, since_ms, instead_of) SELECT '', cluster, 0, '' FROM groups GROUP BY cluster;
ALTER TABLE groups RENAME TO groups_1;
{_GROUPS}
INSERT INTO groups SELECT g.id, c.id, g.name, 1 FROM groups_1 g JOIN clusters c ON c.name = g.cluster;
DROP TABLE groups_1;
CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
"""

_STEPS = {0: _TABLES, 1: _FROM_1}


def version_of(file: sqlite3.Connection) -> int:
    """0: it is empty."""
    [version] = file.execute("PRAGMA user_version").fetchone()
    return int(version)


def bring_up_to_date(file: sqlite3.Connection) -> None:
    """Within a transaction: what an empty file, or one of an earlier version, lacks."""
    for statement in _STEPS[version_of(file)].split(";"):
        file.execute(statement)
    file.execute(f"PRAGMA user_version = {VERSION}")
