"""Tables about the tables: records that could not be decoded, and checks of the other tables."""

from __future__ import annotations

import pyarrow as pa

from groupkeeper.pipeline.tables.log import PLACE
from groupkeeper.pipeline.tables.schema import TIME, Column, Table

REJECTS = Table(
    "rejects",
    "record of the offsets topic that could not be decoded",
    ("cluster", "log_partition", "log_offset"),
    (
        *PLACE,
        Column("log_time", TIME, "when the record was written, by its timestamp; null: it has none"),
        Column("record_type", pa.int16(), "type of the key; null: the key is too short"),
        Column("value_version", pa.int16(), "version of the value; null: it has none"),
        Column("reason", pa.string(), "why it could not be decoded: unknown type or version, malformed"),
        Column("raw_bytes", pa.int64(), "length of key and value; null: read by a version that did not count them"),
        Column("raw_sha256", pa.string(), "SHA-256 of key and value, in hexadecimal; null as above"),
        Column("first_time", TIME, "when a run first saw it, by the clock of the machine that ran it"),
    ),
    is_carried=True,
)

QUALITY = Table(
    "quality",
    "check of the last run",
    ("cluster", "table_name", "check_name"),
    (
        Column("cluster", pa.string(), "name of the cluster; null: the check covers all clusters"),
        Column("table_name", pa.string(), "the table; null: the check covers the directory"),
        Column("check_name", pa.string(), "keys, gaps, counts, rejects or freshness"),
        Column("result", pa.string(), "ok, failed, or unknown if the run did not have what the check needs"),
        Column("found", pa.int64(), "how many rows, offsets or partitions failed the check"),
        Column("detail", pa.string(), "the finding, as a sentence"),
        Column("measured_time", TIME, "the instant"),
    ),
)
"""Covers only the rows that the run read and built; `groupkeeper pipeline quality` checks all rows."""
