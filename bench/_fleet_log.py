"""An embedded broker whose offsets topic grows by what is asked for: `python bench/_fleet_log.py DIRECTORY`.

Each line of standard input is a number of records to grow to; the answer is a line of JSON: Filled. Of 1,000 batches,
each of one of 200 groups, 990 are commits of 10 partitions, 9 a rebalance of three members, and one the deletion of an
offset; now and then a group is put back. A second has 2,000 records, and the last one of the largest size is of now.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from google_crc32c import value as crc32c

from groupkeeper.broker import Broker
from groupkeeper.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    encode_assignment,
    encode_subscription,
)
from groupkeeper.protocol.messages.group_metadata_key import GroupMetadataKey
from groupkeeper.protocol.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from groupkeeper.protocol.messages.offset_commit_key import OffsetCommitKey
from groupkeeper.protocol.messages.offset_commit_value import OffsetCommitValue
from groupkeeper.protocol.offsets_topic import Entry, Tombstone, encode_record
from groupkeeper.protocol.record_batch import Record, write_batch

PARTITIONS = 8
GROUPS = 200
PER_BATCH = 10
TOPIC = "orders-topic"
MEMBERS = 3
MS_PER_BATCH = 5
MOST = 20_000_000
"""So many records end about now."""

_END_OF_TOPIC = 1_000_000_000
_NUMBER = Struct(">q")
_CRC = Struct(">I")
_CRC_AT, _CHECKED_AT = 17, 21


class Filled(NamedTuple):
    """Where to read, how many records there are, how many of them commits or deletions of offsets."""

    servers: str
    records: int
    commits: int


class Commits:
    """Batches of one group's commits, made of the first one: the same bytes, but for offsets and times."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        marks, time_ms = [2**62 + partition for partition in range(PER_BATCH)], 2**61
        self._batch = bytearray(self._encoded(marks, time_ms))
        self._offsets_at = [self._batch.index(_NUMBER.pack(mark)) for mark in marks]
        self._times_at = list(_places(self._batch, _NUMBER.pack(time_ms)))
        self._is_checked = False

    def at(self, offsets: list[int], time_ms: int) -> bytes:
        batch, put = self._batch, _NUMBER.pack_into
        for position, offset in zip(self._offsets_at, offsets, strict=True):
            put(batch, position, offset)
        for position in self._times_at:
            put(batch, position, time_ms)
        _CRC.pack_into(batch, _CRC_AT, crc32c(bytes(batch[_CHECKED_AT:])))
        found = bytes(batch)
        if not self._is_checked:
            assert found == self._encoded(offsets, time_ms)
            self._is_checked = True
        return found

    def _encoded(self, offsets: list[int], time_ms: int) -> bytes:
        return write_batch(
            [
                Record(*encode_record(Entry(_key(self._group_id, each), OffsetCommitValue(offset, 3, "", time_ms))),
                       (), time_ms)
                for each, offset in enumerate(offsets)
            ]
        )  # fmt: skip


def _places(batch: bytes | bytearray, part: bytes) -> list[int]:
    found = [batch.find(part)]
    while found[-1] >= 0:
        found.append(batch.find(part, found[-1] + 1))
    return found[:-1]


class Fleet:
    """What happens to the groups, batch after batch: the same for everybody who asks."""

    def __init__(self, append: Callable[[int, bytes, int], object]) -> None:
        self.records = self.commits = 0
        self._append = append
        self._rng = random.Random(1)
        self._offsets = [[self._rng.randrange(100_000_000) for _ in range(PER_BATCH)] for _ in range(GROUPS)]
        self._commits = [Commits(_name(group)) for group in range(GROUPS)]
        self._batches = 0
        self._began_ms = time.time_ns() // 1_000_000 - MOST // PER_BATCH * MS_PER_BATCH

    def grow(self, records: int) -> None:
        draw = self._rng.randrange
        while self.records < records:
            self._batches += 1
            group, number = draw(GROUPS), self._batches
            time_ms = self._began_ms + number * MS_PER_BATCH
            if number % 1000 == 0:
                key = Tombstone(_key(_name(group), draw(PER_BATCH)))
                self._put(group, write_batch([Record(*encode_record(key), (), time_ms)]), time_ms, 1)
                self.commits += 1
            elif number % 100 == 0:
                self._put(group, _rebalance(group, number, time_ms), time_ms, 1)
            else:
                offsets = self._offsets[group]
                step = -50_000 if draw(1000) == 0 else draw(1000)
                offsets[:] = [max(0, offset + step + each) for each, offset in enumerate(offsets)]
                self._put(group, self._commits[group].at(offsets, time_ms), time_ms, PER_BATCH)
                self.commits += PER_BATCH

    def _put(self, group: int, batch: bytes, time_ms: int, records: int) -> None:
        self._append(group % PARTITIONS, batch, time_ms)
        self.records += records


def _name(group: int) -> str:
    return f"group-{group:05d}"


def _key(group_id: str, partition: int) -> OffsetCommitKey:
    return OffsetCommitKey(group_id, TOPIC, partition)


def _rebalance(group: int, generation: int, time_ms: int) -> bytes:
    members = [
        MemberMetadata(
            member_id=f"consumer-{group}-{number % 2 * generation + number}",
            client_id="consumer",
            client_host="/10.0.0.1",
            rebalance_timeout=300_000,
            session_timeout=45_000,
            subscription=encode_subscription(ConsumerProtocolSubscription([TOPIC])),
            assignment=encode_assignment(ConsumerProtocolAssignment()),
        )
        for number in range(MEMBERS)
    ]
    value = GroupMetadataValue("consumer", generation, "range", members[0].member_id, time_ms, members)
    return write_batch([Record(*encode_record(Entry(GroupMetadataKey(_name(group)), value)), (), time_ms)])


async def serve(directory: str) -> None:
    properties = {"log.cleaner.enable": "false", "offsets.topic.num.partitions": str(PARTITIONS)}
    async with Broker(directory=directory, properties=properties) as broker:
        broker.groups.ensure_topic()
        topic = broker.topics.get("__consumer_offsets")
        assert topic is not None
        fleet = Fleet(lambda partition, batch, time_ms: topic.partitions[partition].append(batch, time_ms))
        now_ms = time.time_ns() // 1_000_000
        ends = [Record(b"", b"", (), now_ms, 0), Record(b"", b"", (), now_ms, _END_OF_TOPIC)]
        for log in broker.topics.create(TOPIC, PER_BATCH).partitions:  # as compaction leaves it
            log.append(write_batch(ends, keeps_offsets=True), now_ms)
        while line := await asyncio.to_thread(sys.stdin.readline):
            fleet.grow(int(line))
            print(json.dumps(Filled(broker.bootstrap_servers, fleet.records, fleet.commits)), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    asyncio.run(serve(sys.argv[1]))
