"""Times of commits, read from `__consumer_offsets`, as OffsetFetch doesn't return them.

Each commit is a record there, with the coordinator's time. Reading needs READ on the topic, and takes as long as
reading what compaction has left of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Failure, OffsetSpec, TopicPartition
from groupkeeper.operations.topics import describe_topics
from groupkeeper.protocol import OFFSETS_TOPIC
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.java_hash import partition_of_group
from groupkeeper.protocol.messages import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from groupkeeper.protocol.offsets_topic import Entry, Tombstone, decode_record
from groupkeeper.protocol.record import Record
from groupkeeper.protocol.record_batch import CorruptRecord, iter_headers, read_end_transaction, read_records
from groupkeeper.rules.expiry import emptied_ms


class CommitTime(NamedTuple):
    """A commit. `time_ms`: since 1970; `expires_ms`: its own expiry, None: the broker's retention applies."""

    offset: int
    time_ms: int
    expires_ms: int | None = None


class CommitTimes(NamedTuple):
    """`commits`: the current ones by group and partition. `empty_ms`: since when classic groups have had no
    members; other groups, and those that never had any, are missing. `failed`: partitions of `__consumer_offsets`
    that could not be read to their end: nothing is known of their groups.
    """

    commits: dict[str, dict[TopicPartition, CommitTime]]
    empty_ms: dict[str, int]
    failed: dict[TopicPartition, Failure]
    partitions: int

    def failure(self, group_id: str) -> Failure | None:
        """Why nothing is known of a group; None: its commits are known."""
        return self.failed.get(_place(group_id, self.partitions)) if self.partitions else None


async def commit_times(admin: Admin, group_ids: Collection[str]) -> CommitTimes:
    """Times of the commits of some groups; only their partitions of `__consumer_offsets` are read.

    Raises why the topic cannot be described; a cluster without it has no commits.
    """
    described = await describe_topics(admin, [OFFSETS_TOPIC])
    count = len(described.result(OFFSETS_TOPIC).partitions)
    reader = OffsetsReader(group_ids)
    tps = dict.fromkeys(_place(group_id, count) for group_id in group_ids)
    failed: dict[TopicPartition, Failure] = {}
    if tps:
        first = await admin.list_offsets(dict.fromkeys(tps, OffsetSpec.earliest()))
        last = await admin.list_offsets(dict.fromkeys(tps, OffsetSpec.latest()))
        failed |= first.failed | last.failed
        ranges = {tp: (first.done[tp].offset, last.done[tp].offset) for tp in tps if tp not in failed}
        failed |= (await admin.read_logs(ranges, reader.take)).failed
    failed |= reader.corrupt
    return CommitTimes(reader.commits, reader.empty_ms, failed, count)


def _place(group_id: str, count: int) -> TopicPartition:
    return TopicPartition(OFFSETS_TOPIC, partition_of_group(group_id, count))


class OffsetsReader:
    """Collects the commit times of some groups from records of `__consumer_offsets`.

    Commits within a transaction count from its end on, if it is committed.

    Attributes:
        corrupt: partitions with a batch that cannot be read.
    """

    def __init__(self, group_ids: Iterable[str]) -> None:
        self.commits: dict[str, dict[TopicPartition, CommitTime]] = {}
        self.empty_ms: dict[str, int] = {}
        self.corrupt: dict[TopicPartition, Failure] = {}
        self._wanted = frozenset(group_ids)
        self._pending: dict[tuple[TopicPartition, int], list[Record]] = {}

    def take(self, tp: TopicPartition, records: bytes) -> int | None:
        """Applies the records: the `take` of Admin.read_logs."""
        behind = None
        try:
            for pos, header in iter_headers(records):
                batch = read_records(records, pos)
                if header.is_control:
                    self._end(tp, header.producer_id, batch)
                elif header.is_transactional:
                    self._pending.setdefault((tp, header.producer_id), []).extend(batch)
                else:
                    self._replay(batch)
                behind = header.next_offset
        except (CorruptRecord, MalformedMessage) as error:
            from groupkeeper.client.errors import UnexpectedResponse

            self.corrupt[tp] = UnexpectedResponse(f"a record cannot be read: {error}")
            return 2**63 - 1
        return behind

    def _end(self, tp: TopicPartition, producer_id: int, batch: list[Record]) -> None:
        pending = self._pending.pop((tp, producer_id), [])
        for record in batch:
            marker = read_end_transaction(record)
            if marker is not None and marker.is_commit:
                self._replay(pending)

    def _replay(self, batch: Iterable[Record]) -> None:
        for record in batch:
            if record.key is not None:
                self._apply(decode_record(record.key, record.value))

    def _apply(self, record: object) -> None:
        match record:
            case Entry(OffsetCommitKey() as key, OffsetCommitValue() as value) if key.group in self._wanted:
                expires_ms = None if value.expire_timestamp < 0 else value.expire_timestamp
                tp = TopicPartition(key.topic, key.partition)
                commit = CommitTime(value.offset, value.commit_timestamp, expires_ms)
                self.commits.setdefault(key.group, {})[tp] = commit
            case Tombstone(OffsetCommitKey() as key):
                self.commits.get(key.group, {}).pop(TopicPartition(key.topic, key.partition), None)
            case Entry(GroupMetadataKey() as key, GroupMetadataValue() as value) if key.group in self._wanted:
                since_ms, has_protocol = value.current_state_timestamp, bool(value.protocol_type)
                empty_ms = emptied_ms(
                    has_protocol=has_protocol, has_members=bool(value.members), state_since_ms=since_ms
                )
                if empty_ms is not None:
                    self.empty_ms[key.group] = empty_ms
                else:
                    self.empty_ms.pop(key.group, None)
            case Tombstone(GroupMetadataKey() as key):
                self.empty_ms.pop(key.group, None)
