"""Records of the offsets topic → Arrow batches of the schema tables.DECODED."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from groupkeeper.pipeline.decode import group_record
from groupkeeper.pipeline.decode.commits import COMMIT_TYPES, Commits, key_types, read_commits, with_valid_texts
from groupkeeper.pipeline.decode.records import Records
from groupkeeper.pipeline.decode.texts import binaries, of_numbers, texts, uuids
from groupkeeper.pipeline.decode.views import Ints, choose
from groupkeeper.pipeline.tables import DECODED
from groupkeeper.protocol import MalformedMessage
from groupkeeper.protocol.messages.offset_commit_key import OffsetCommitKey
from groupkeeper.protocol.messages.offset_commit_value import OffsetCommitValue
from groupkeeper.protocol.offsets_topic import Entry, UnknownRecord, decode_record
from groupkeeper.protocol.primitives import ZERO_UUID
from groupkeeper.protocol.record import Record
from groupkeeper.protocol.record_batch import CorruptRecord, read_end_transaction
from groupkeeper.protocol.uuids import uuid_text

Row = dict[str, Any]

_PLACE = ("cluster", "log_partition", "log_offset", "log_timestamp_ms", "producer_id")
"""Columns of tables.DECODED that don't depend on key and value."""
_CONTENT = pa.schema([field for field in DECODED.arrow if field.name not in _PLACE])

Places = Callable[[Records], dict[str, pa.Array]]
"""A function that makes the columns _PLACE of records, by name."""


class Origin(NamedTuple):
    """Where a record set comes from."""

    cluster: str
    partition: int


def decode(records: Records, places: Places) -> Iterator[pa.RecordBatch]:
    """All records as rows of tables.DECODED, offset commits first."""
    types = key_types(records)
    may_be_commit = np.isin(types, COMMIT_TYPES) & ~records.is_control
    rest = ~may_be_commit
    if may_be_commit.any():
        rows = np.flatnonzero(may_be_commit)
        candidates = records.where(rows)
        commits = read_commits(candidates, types[rows])
        try:
            batch = _commits_batch(candidates, commits, types[rows], places)
        except pa.ArrowInvalid:  # a text is not UTF-8: which one is found out only now
            commits = with_valid_texts(commits, records.data)
            batch = _commits_batch(candidates, commits, types[rows], places)
        rest[rows[~commits.ok]] = True
        if batch.num_rows:
            yield batch
    if rest.any():
        others = records.where(rest)
        found = pa.RecordBatch.from_pylist([_row(others, row) for row in range(len(others))], schema=_CONTENT)
        yield _whole(others, places, dict(zip(_CONTENT.names, found.columns, strict=True)))


def latest_of_keys(records: Records) -> Records:
    """The last record of each key; markers are left out. The records are of one cluster."""
    records = records.where(~records.is_control) if records.is_control.any() else records
    if not len(records):
        return records
    keys = binaries(records.data, records.key_at, records.key_size).dictionary_encode(null_encoding="encode")
    numbers = keys.indices.to_numpy(zero_copy_only=False)
    last = np.zeros(len(keys.dictionary), np.int64)
    np.maximum.at(last, numbers, np.arange(len(numbers)))
    return records.where(np.sort(last))


def places_of(origins: Sequence[Origin]) -> Places:
    """The places of fetched records; `origins` are those of their record sets."""
    partitions = np.array([origin.partition for origin in origins], np.int64)

    def places(records: Records) -> dict[str, pa.Array]:
        return {
            "cluster": _clusters(records, origins),
            "log_partition": of_numbers(partitions[records.set_index], pa.int32()),
            "log_offset": of_numbers(records.offset, pa.int64()),
            "log_timestamp_ms": of_numbers(records.timestamp, pa.int64()),
            "producer_id": of_numbers(records.producer_id, pa.int64(), records.producer_id < 0),
        }

    return places


def _whole(records: Records, places: Places, content: dict[str, pa.Array]) -> pa.RecordBatch:
    """A batch of all columns of tables.DECODED; missing ones are null."""
    columns = places(records) | content
    schema = DECODED.arrow
    empty = {field.name: pa.nulls(len(records), field.type) for field in schema if field.name not in columns}
    return pa.RecordBatch.from_arrays([{**columns, **empty}[name] for name in schema.names], schema=schema)


def _commits_batch(records: Records, commits: Commits, types: Ints, places: Places) -> pa.RecordBatch:
    """The batch of the commits that are `ok`. Raises pa.ArrowInvalid for a text that is not UTF-8."""
    records, types, commits = records.where(commits.ok), types[commits.ok], choose(commits, commits.ok)
    gone = commits.is_tombstone
    data = records.data
    metadata_size = np.where(gone, -1, commits.metadata_size)
    metadata_at = np.where(gone, records.value_at, commits.metadata_at)
    columns = {
        "record_type": of_numbers(types, pa.int16()),
        "value_version": of_numbers(commits.version, pa.int16(), gone),
        "is_tombstone": pa.array(gone),
        "group_id": texts(data, commits.group_at, commits.group_size),
        "topic": texts(data, commits.topic_at, commits.topic_size),
        "partition": of_numbers(commits.partition, pa.int32()),
        "committed_offset": of_numbers(commits.offset, pa.int64(), gone),
        "leader_epoch": of_numbers(commits.leader_epoch, pa.int32(), gone | (commits.leader_epoch < 0)),
        "topic_id": uuids(data, np.where(gone, -1, commits.topic_id_at)),
        "metadata": texts(data, metadata_at, metadata_size),
        "commit_timestamp_ms": of_numbers(commits.commit_timestamp, pa.int64(), gone),
        "expire_timestamp_ms": of_numbers(
            commits.expire_timestamp, pa.int64(), gone | (commits.expire_timestamp == -1)
        ),
    }
    return _whole(records, places, columns)


def _clusters(records: Records, origins: Sequence[Origin]) -> pa.StringArray:
    names = [origin.cluster for origin in origins]
    if len(set(names)) == 1:
        return pa.repeat(pa.scalar(names[0], pa.string()), len(records))
    return pa.array(names, pa.string()).take(pa.array(records.set_index))


def _row(records: Records, row: int) -> Row:
    key, value = records.key(row), records.value(row)
    return _marker(key, value) if records.is_control[row] else _one(key, value)


def _one(key: bytes | None, value: bytes | None) -> Row:
    if key is None or len(key) < 2:
        return _rejected(key, value) | {
            "problem": "the record has no key" if key is None else f"a key of {len(key)} bytes"
        }
    types = {"record_type": int.from_bytes(key[:2], "big", signed=True)}
    if value is not None and len(value) >= 2:
        types["value_version"] = int.from_bytes(value[:2], "big", signed=True)
    try:
        record = decode_record(key, value)
    except MalformedMessage as error:
        return _rejected(key, value) | types | {"problem": _reason(error)}
    if isinstance(record, UnknownRecord):
        return _rejected(key, value) | types | {"problem": f"unknown record type {record.key_type}"}
    found: Row = types | {"is_tombstone": value is None, "group_id": group_record.group_id_of(record.key)}
    content = record.value if isinstance(record, Entry) else None
    if isinstance(record.key, OffsetCommitKey):
        return found | _commit(record.key, content)
    return found | {"group_record": group_record.group_record_json(record.key, content, types.get("value_version"))}


def _reason(error: MalformedMessage) -> str:
    """The error's text without the sizes and positions in this record, so that records with one fault have one
    reason.
    """
    text = _PAST_THE_END.sub(": it ends before its last field", str(error))
    kind, colon, why = text.partition(": ")
    return f"{kind}: a count or a length does not fit the record" if colon and _NUMBER.search(why) else text


_PAST_THE_END = re.compile(r" runs \d+ bytes past the end$")
_NUMBER = re.compile(r"\d")


def _rejected(key: bytes | None, value: bytes | None) -> Row:
    """Columns of a record that cannot be decoded, except `problem`."""
    more = group_record.rejected_json(key, value)
    return {"is_tombstone": value is None, "raw_key": key, "raw_value": value, "group_record": more}


def _commit(key: OffsetCommitKey, value: object) -> Row:
    found: Row = {"topic": key.topic, "partition": key.partition}
    if isinstance(value, OffsetCommitValue):
        found |= {
            "committed_offset": value.offset,
            "leader_epoch": None if value.leader_epoch < 0 else value.leader_epoch,
            "topic_id": None if value.topic_id == ZERO_UUID else uuid_text(value.topic_id),
            "metadata": value.metadata,
            "commit_timestamp_ms": value.commit_timestamp,
            "expire_timestamp_ms": None if value.expire_timestamp == -1 else value.expire_timestamp,
        }
    return found


def _marker(key: bytes | None, value: bytes | None) -> Row:
    rejected = _rejected(key, value) | {"is_tombstone": False}
    try:
        marker = read_end_transaction(Record(key, value))
    except CorruptRecord as error:
        return rejected | {"problem": str(error)}
    if marker is None:
        return rejected | {"problem": "a control record that ends no transaction"}
    return {"is_tombstone": False, "group_record": group_record.marker_json(marker)}
