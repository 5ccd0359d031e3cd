"""Offset commits of many records at a time: keys of type 0 and 1, values of version 0 to 4.

The layouts are those of protocol.offsets_topic; a test compares the two on every version. Values of an unusual form (a
long varint, an unknown tag) are read one record at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from groupkeeper.pipeline.decode.records import Records
from groupkeeper.pipeline.decode.texts import are_valid
from groupkeeper.pipeline.decode.views import Bools, Ints, View
from groupkeeper.protocol import MalformedMessage
from groupkeeper.protocol.primitives import read_tag_count, read_varint

COMMIT_TYPES = (0, 1)
_MAX_VERSION = (0, 4)
"""Highest version of a value by the key's type."""

_NO_TYPE = -1
_NONE = -1
_TOPIC_ID_SIZE = 16
_TIME_SIZE = 8
_FLEXIBLE_TEXT_AT = 14
"""The position of the metadata's length in a value of version 4."""


@dataclass(frozen=True, slots=True)
class Commits:
    """Fields of offset commits, one element per record. Fields of records that are not ok have no meaning, nor do those
    of a tombstone's value.
    """

    ok: Bools
    """Whether key and value match a schema, except that texts may not be UTF-8: `with_valid_texts` checks that.
    Decoding the record alone tells why it is not ok.
    """
    is_tombstone: Bools
    version: Ints
    group_at: Ints
    group_size: Ints
    topic_at: Ints
    topic_size: Ints
    partition: Ints
    offset: Ints
    leader_epoch: Ints
    metadata_at: Ints
    metadata_size: Ints
    commit_timestamp: Ints
    expire_timestamp: Ints
    topic_id_at: Ints
    """The position of the topic's id; −1: there is none."""


def key_types(records: Records) -> Ints:
    """The types of keys, −1 where a key is null or too short to have one."""
    has_type = records.key_size >= 2
    if not len(records):
        return np.empty(0, np.int64)
    found = View(records.data).int16(np.where(has_type, records.key_at, 0))
    return np.where(has_type, found, _NO_TYPE)


def read_commits(records: Records, types: Ints) -> Commits:
    """The fields of records whose keys are of the types 0 and 1."""
    view = View(records.data)
    group_at, group_size, topic_at, topic_size, partition, key_ok = _keys(view, records)
    is_tombstone = records.value_size < 0
    version, value_ok = _versions(view, records, types)
    values = _Values(view, records, version, value_ok & ~is_tombstone)
    return Commits(
        ok=key_ok & (is_tombstone | values.ok),
        is_tombstone=is_tombstone,
        version=version,
        group_at=group_at,
        group_size=group_size,
        topic_at=topic_at,
        topic_size=topic_size,
        partition=partition,
        offset=values.offset,
        leader_epoch=values.leader_epoch,
        metadata_at=values.metadata_at,
        metadata_size=values.metadata_size,
        commit_timestamp=values.commit_timestamp,
        expire_timestamp=values.expire_timestamp,
        topic_id_at=values.topic_id_at,
    )


def with_valid_texts(commits: Commits, data: bytes) -> Commits:
    """The same commits, but those with a text that is not UTF-8 are not `ok`."""
    ok = commits.ok.copy()
    for at, size in ((commits.group_at, commits.group_size), (commits.topic_at, commits.topic_size)):
        ok[ok] &= are_valid(data, at[ok], size[ok])
    has_metadata = ok & ~commits.is_tombstone & (commits.metadata_size > 0)
    ok[has_metadata] &= are_valid(data, commits.metadata_at[has_metadata], commits.metadata_size[has_metadata])
    return replace(commits, ok=ok)


def _keys(view: View, records: Records) -> tuple[Ints, Ints, Ints, Ints, Ints, Bools]:
    begin = records.key_at
    end = begin + records.key_size
    group_at = begin + 4
    ok = group_at <= end
    group_size = view.int16(np.where(ok, begin + 2, 0))
    topic_at = group_at + group_size + 2
    ok &= (group_size >= 0) & (topic_at <= end)
    topic_size = view.int16(np.where(ok, topic_at - 2, 0))
    partition_at = topic_at + topic_size
    ok &= (topic_size >= 0) & (partition_at + 4 <= end)
    partition = view.int32(np.where(ok, partition_at, 0))
    return group_at, group_size, topic_at, topic_size, partition, ok


def _versions(view: View, records: Records, types: Ints) -> tuple[Ints, Bools]:
    ok = records.value_size >= 2
    version = np.where(ok, view.int16(np.where(ok, records.value_at, 0)), _NONE)
    highest = np.where(types == 0, _MAX_VERSION[0], _MAX_VERSION[1])
    return version, ok & (version >= 0) & (version <= highest)


class _Values:
    """Fields of values; those that are not `ok` have no meaning, and position 0 is read for them."""

    def __init__(self, view: View, records: Records, version: Ints, ok: Bools) -> None:
        self._end = records.value_at + records.value_size
        has_epoch = version >= 3
        is_flexible = version >= 4
        offset_at = records.value_at + 2
        size_at = np.where(has_epoch, offset_at + 12, offset_at + 8)
        text_at = np.where(is_flexible, size_at + 1, size_at + 2)
        ok = ok & (text_at <= self._end)
        self.offset = view.int64(np.where(ok, offset_at, 0)) if ok.any() else np.zeros(len(ok), np.int64)
        self.leader_epoch = np.full(len(ok), _NONE, np.int64)
        epochs = np.flatnonzero(ok & has_epoch)
        self.leader_epoch[epochs] = view.int32(offset_at[epochs] + 8)
        self.metadata_at = text_at
        self.metadata_size = np.zeros(len(ok), np.int64)
        plain = np.flatnonzero(ok & ~is_flexible)
        self.metadata_size[plain] = view.int16(size_at[plain])
        flexible = np.flatnonzero(ok & is_flexible)
        self.metadata_size[flexible] = view.int8(size_at[flexible]) - 1
        self.commit_timestamp = np.full(len(ok), _NONE, np.int64)
        self.expire_timestamp = np.full(len(ok), _NONE, np.int64)
        self.topic_id_at = np.full(len(ok), _NONE, np.int64)
        self.ok = ok
        self._read_plain(view, plain, version)
        self._read_flexible(view, records, flexible)

    def _read_plain(self, view: View, rows: Ints, version: Ints) -> None:
        time_at = self.metadata_at[rows] + self.metadata_size[rows]
        expires = version[rows] == 1
        good = (self.metadata_size[rows] >= 0) & (time_at + 8 + 8 * expires <= self._end[rows])
        self.ok[rows] = good
        rows, time_at, expires = rows[good], time_at[good], expires[good]
        self.commit_timestamp[rows] = view.int64(time_at)
        self.expire_timestamp[rows[expires]] = view.int64(time_at[expires] + 8)

    def _read_flexible(self, view: View, records: Records, rows: Ints) -> None:
        size = self.metadata_size[rows]
        tags_at = self.metadata_at[rows] + size + 8
        usual = (size >= 0) & (size < 0x7F) & (tags_at < self._end[rows])
        tags = view.int8(np.where(usual, tags_at, 0)) if len(rows) else np.empty(0, np.int64)
        has_id = usual & (tags == 1) & (tags_at + 3 + _TOPIC_ID_SIZE <= self._end[rows])
        # A single tag, number 0, of 16 bytes.
        has_id[has_id] = view.int16(tags_at[has_id] + 1) == _TOPIC_ID_SIZE
        usual &= (tags == 0) | has_id
        self.commit_timestamp[rows[usual]] = view.int64(tags_at[usual] - 8)
        self.topic_id_at[rows[has_id]] = tags_at[has_id] + 3
        for row in rows[~usual].tolist():
            self._read_one(records, row)

    def _read_one(self, records: Records, row: int) -> None:
        """Reads a flexible value of an unusual form."""
        begin = int(records.value_at[row])
        value = records.value(row) or b""
        try:
            length, text_at = read_varint(value, _FLEXIBLE_TEXT_AT)
            time_at = text_at + length - 1
            topic_id_at = _topic_id_at(value, time_at + _TIME_SIZE)
        except (IndexError, MalformedMessage):
            length = 0
        if not length:  # null, or malformed
            self.ok[row] = False
            return
        self.metadata_at[row] = begin + text_at
        self.metadata_size[row] = length - 1
        self.commit_timestamp[row] = int.from_bytes(value[time_at : time_at + _TIME_SIZE], "big", signed=True)
        self.topic_id_at[row] = _NONE if topic_id_at == _NONE else begin + topic_id_at


def _topic_id_at(data: bytes, pos: int) -> int:
    """The position of the topic id in the tags from `pos` on; −1: none. Raises MalformedMessage, IndexError."""
    count, pos = read_tag_count(data, pos)
    found = _NONE
    for _ in range(count):
        tag, pos = read_varint(data, pos)
        size, pos = read_varint(data, pos)
        if tag == 0:
            if size != _TOPIC_ID_SIZE:
                raise MalformedMessage(f"a topic id of {size} bytes")
            found = pos
        pos += size
    if pos > len(data):
        raise MalformedMessage(f"tags run {pos - len(data)} bytes past the end")
    return found
