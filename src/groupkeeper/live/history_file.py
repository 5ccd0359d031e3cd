"""The file of the history: its tables and its version."""

from __future__ import annotations

import sqlite3

VERSION = 2

_TABLES = """
CREATE TABLE clusters (
    id INTEGER PRIMARY KEY, cluster_id TEXT NOT NULL, name TEXT NOT NULL, since_ms INTEGER NOT NULL,
    instead_of TEXT NOT NULL,
    measured_ms INTEGER, succeeded_ms INTEGER, failing_ms INTEGER
);
CREATE TABLE groups (
    id INTEGER PRIMARY KEY, cluster INTEGER NOT NULL, name TEXT NOT NULL, is_gone INTEGER NOT NULL,
    UNIQUE (cluster, name)
);
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
CREATE TABLE kept (name TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
"""
"""A cluster has the label ``name`` since ``since_ms``, and the cluster with the id ``instead_of`` had it before."""


def version_of(file: sqlite3.Connection) -> int:
    """0: it is empty."""
    [version] = file.execute("PRAGMA user_version").fetchone()
    return int(version)


def create(file: sqlite3.Connection) -> None:
    """Within a transaction: the tables, in an empty file."""
    for statement in _TABLES.split(";"):
        file.execute(statement)
    file.execute(f"PRAGMA user_version = {VERSION}")
