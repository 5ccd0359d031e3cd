"""Offsets topics that never were: random histories of clusters, one cluster each, as bytes and as what they mean.

A history is adversarial on purpose: groups of all types that are deleted, come back and change their type, every
version of offset commits, transactions that end, are aborted or stay open, equal times and clocks that go back, gaps
as compaction leaves them, extreme offsets, names that need quoting.
"""

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from groupkeeper.pipeline.decode.batches import AbortedRange, RecordSet
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.codec import encode
from groupkeeper.protocol.consumer_protocol import encode_assignment, encode_subscription
from groupkeeper.protocol.messages import consumer_protocol_assignment as assignments
from groupkeeper.protocol.offsets_topic import _CLASSES as CLASSES
from groupkeeper.protocol.primitives import RootMessage
from groupkeeper.protocol.record import Record
from groupkeeper.protocol.record_batch import EndTransaction, end_transaction_record, write_batch
from groupkeeper.protocol.streams_records import STREAMS_CLASSES

MINUTE, DAY = 60_000, 24 * 3600 * 1000
BEGIN = 1_767_225_600_000  # 2026-01-01
NAMES = ("g", "group with 'quotes'", 'a "b" \\ `c`; --', "группа-\U0001f600", "", "g.*[0]", "n\nl\x00\t")
TOPICS = ("t", "orders.eu", "тема")
IDS = (b"\x00" * 16, b"\x01" * 16, b"\x02" * 16)
OFFSETS = (0, 1, 5, 100, 2**31, 2**63 - 1, -1, -(2**63))
_OTHERS = {name: pair for pair in (*CLASSES.values(), *STREAMS_CLASSES.values())
           for name in [pair[0].__name__.removesuffix("Key")]}  # fmt: skip


class Logged(NamedTuple):
    """A record in the log. `ends` tells of a marker whether it commits; the producer −1: no transaction."""

    offset: int
    time_ms: int
    key: RootMessage | None
    value: RootMessage | None
    version: int = 0
    producer_id: int = -1
    ends: bool | None = None
    raw: tuple[bytes, bytes | None] | None = None
    """Key and value of a record that no schema describes."""

    @property
    def name(self) -> str:
        return "" if self.key is None else type(self.key).__name__.removesuffix("Key")


class History(NamedTuple):
    """A partition of a cluster's offsets topic."""

    cluster: str
    records: list[Logged]
    aborted: list[AbortedRange]
    stable: int
    """The last stable offset."""

    def record_set(self) -> RecordSet:
        return RecordSet(b"".join(map(_batch, self.records)), 0, self.stable, self.aborted)


def _batch(one: Logged) -> bytes:
    settings: dict[str, Any] = {"base_offset": one.offset}
    if one.producer_id >= 0:
        settings |= {"producer_id": one.producer_id, "producer_epoch": 0, "is_transactional": True}
    if one.ends is not None:
        record = end_transaction_record(EndTransaction(one.ends, 0), one.time_ms)
        return write_batch([record], is_control=True, **settings)
    if one.raw is not None:
        return write_batch([Record(*one.raw, (), one.time_ms)], **settings)
    assert one.key is not None
    number = 0 if one.name == "OffsetCommit" and one.version == 0 and one.offset % 2 else one.key.RECORD_TYPE
    key = number.to_bytes(2, "big") + encode(one.key, 0)
    value = None if one.value is None else one.version.to_bytes(2, "big") + encode(one.value, one.version)
    return write_batch([Record(key, value, (), one.time_ms)], **settings)


class _Group:
    """What the generator knows of a group."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self.epoch = 0
        self.members: dict[str, list[str]] = {}
        self.committed: dict[tuple[str, int], int] = {}


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.records: list[Logged] = []
        self.aborted: list[AbortedRange] = []
        self.open: dict[int, int] = {}
        self.offset = rng.choice((0, 7))
        self.now = BEGIN + rng.randrange(DAY)
        self.groups = {name: _Group() for name in rng.sample(NAMES, rng.choice((1, 2, 3)))}

    def put(self, key: RootMessage | None, value: RootMessage | None = None, **columns: Any) -> None:
        self.records.append(Logged(self.offset, self.now, key, value, **columns))
        self.offset += 1

    def other(self, name: str, group_id: str, member_id: str | None, *gone: bool, **fields: Any) -> None:
        """A record that is neither a commit nor a classic group's; any `gone`: its tombstone."""
        key_class: Any
        key_class, value_class = _OTHERS[name]
        key = key_class(group_id) if member_id is None else key_class(group_id, member_id)
        self.put(key, None if gone else value_class(**fields))

    def pass_time(self) -> None:
        step = self.rng.choice((0, 0, 0, 1, 500, MINUTE, 20 * MINUTE, DAY, 3 * DAY, 8 * DAY, -1, -2 * MINUTE))
        self.now += step

    def commit(self, group_id: str) -> None:
        rng, group = self.rng, self.groups[group_id]
        place = (rng.choice(TOPICS), rng.choice((0, 1, 1, 2**31 - 1)))
        version = rng.randrange(5)
        offset = (
            rng.choice(OFFSETS) if rng.random() < 0.3 else max(0, group.committed.get(place, 0) + rng.randrange(-5, 20))
        )
        offset = min(offset, 2**63 - 1)
        time_ms = self.now if rng.random() < 0.9 else self.now - rng.choice((5, MINUTE, 9 * DAY))
        value = m.OffsetCommitValue(offset, metadata=rng.choice(("", "", "note", "é" * 70)), commit_timestamp=time_ms)
        if version == 1:
            value.expire_timestamp = rng.choice((-1, time_ms + MINUTE, time_ms + 2 * DAY))
        if version >= 3:
            value.leader_epoch = rng.choice((-1, 0, 5))
        if version == 4:
            value.topic_id = rng.choice(IDS)
        producer_id = rng.choice((1, 2)) if rng.random() < 0.2 else -1
        if producer_id >= 0:
            self.open.setdefault(producer_id, self.offset)
        group.committed[place] = offset
        self.put(m.OffsetCommitKey(group_id, *place), value, version=version, producer_id=producer_id)

    def end(self) -> None:
        if not self.open:
            return
        producer_id = self.rng.choice(list(self.open))
        ends = self.rng.random() < 0.6
        first = self.open.pop(producer_id)
        if not ends:
            self.aborted.append(AbortedRange(producer_id, first))
        self.put(None, producer_id=producer_id, ends=ends)

    def remove(self, group_id: str) -> None:
        """Some offsets go, or one that never was; with all of them perhaps the group."""
        rng, group = self.rng, self.groups[group_id]
        places = list(group.committed) or [(rng.choice(TOPICS), 0)]
        for place in rng.sample(places, rng.choice((1, len(places)))):
            group.committed.pop(place, None)
            self.put(m.OffsetCommitKey(group_id, *place))

    def delete(self, group_id: str) -> None:
        group = self.groups[group_id]
        for place in group.committed:
            self.put(m.OffsetCommitKey(group_id, *place))
        group.committed.clear()
        self.leave_all(group_id)
        if group.kind in (None, "Classic"):
            self.put(m.GroupMetadataKey(group_id))
        else:
            self.other(f"{group.kind}GroupTargetAssignmentMetadata", group_id, None, True)
            self.other(f"{group.kind}GroupMetadata", group_id, None, True)
        group.kind, group.epoch = None, 0

    def classic(self, group_id: str) -> None:
        """A rebalance, a static member that comes back, or the last one leaves."""
        rng, group = self.rng, self.groups[group_id]
        if group.kind not in (None, "Classic"):
            self.migrate(group_id)
            return
        if group.kind is None:
            group.kind, group.epoch, group.members = "Classic", rng.choice((0, 0, 40)), {}
        is_same = bool(group.members) and rng.random() < 0.2
        group.epoch += not is_same
        if not is_same and rng.random() < 0.3:
            group.members = {}
        else:
            names = rng.sample(("a", "b", "c", "d\"'"), rng.choice((1, 2)))
            group.members = {name: rng.sample(TOPICS, rng.choice((0, 1, 2))) for name in names}
        self.put_classic(group_id)

    def put_classic(self, group_id: str) -> None:
        rng, group = self.rng, self.groups[group_id]
        protocol_type = rng.choice(("consumer", "consumer", "consumer", "connect", ""))
        version = rng.randrange(5)
        people = []
        for name, topics in group.members.items():
            subscription = encode_subscription(m.ConsumerProtocolSubscription(topics=topics), 1)
            parts = [assignments.TopicPartition("t", [0, 1])]
            assigned = encode_assignment(assignments.ConsumerProtocolAssignment(assigned_partitions=parts), 0)
            blob = rng.choice((subscription, subscription, subscription, b"\x00", b""))
            instance_id = "static" if version >= 3 and name == "a" else None
            timeout = -1 if version == 0 else 7
            people.append(m.MemberMetadata(name, instance_id, "app", "/h", timeout, 9, blob, assigned))
        since = self.now - rng.choice((0, 0, DAY)) if version >= 2 else -1
        protocol = "range" if group.members else None
        value = m.GroupMetadataValue(protocol_type, group.epoch, protocol, protocol, since, people)
        self.put(m.GroupMetadataKey(group_id), value, version=version)

    def migrate(self, group_id: str) -> None:
        """At once, as a coordinator does it, between the classic and the consumer type; or by dying first."""
        rng, group = self.rng, self.groups[group_id]
        members = dict(group.members)
        if group.kind == "Classic":
            self.put(m.GroupMetadataKey(group_id))
            group.kind, group.members = "Consumer", {}
            for name, topics in members.items():
                self.member(group_id, name, topics)
            self.other("ConsumerGroupMetadata", group_id, None, epoch=group.epoch)
            self.target(group_id)
        elif group.kind == "Consumer":
            self.leave_all(group_id)
            self.other("ConsumerGroupTargetAssignmentMetadata", group_id, None, True)
            self.other("ConsumerGroupMetadata", group_id, None, True)
            group.kind, group.members = "Classic", members
            self.put_classic(group_id)
        if rng.random() < 0.1:
            self.migrate(group_id)

    def member(self, group_id: str, name: str, topics: Sequence[str]) -> None:
        group = self.groups[group_id]
        group.members[name] = list(topics)
        fields: dict[str, Any] = {"client_id": "app", "client_host": "/h", "rack_id": None}
        if group.kind in ("Consumer", "Share"):
            fields["subscribed_topic_names"] = list(topics)
        if group.kind == "Consumer":
            fields["subscribed_topic_regex"] = self.rng.choice((None, "", "t.*"))
        if group.kind != "Share":
            fields["instance_id"] = self.rng.choice((None, "i-1"))
        self.other(f"{group.kind}GroupMemberMetadata", group_id, name, **fields)

    def target(self, group_id: str) -> None:
        group = self.groups[group_id]
        self.other(f"{group.kind}GroupTargetAssignmentMetadata", group_id, None, assignment_epoch=group.epoch)

    def current(self, group_id: str, name: str) -> None:
        group = self.groups[group_id]
        state = self.rng.choice((0, 0, 0, 1, 2, 9)) if group.kind != "Share" else 0
        epoch = group.epoch - self.rng.choice((0, 0, 0, 1))
        self.other(f"{group.kind}GroupCurrentMemberAssignment", group_id, name, member_epoch=epoch, state=state)

    def leave(self, group_id: str, name: str) -> None:
        group = self.groups[group_id]
        group.members.pop(name, None)
        if group.kind not in (None, "Classic"):
            for each in ("CurrentMemberAssignment", "TargetAssignmentMember", "MemberMetadata"):
                self.other(f"{group.kind}Group{each}", group_id, name, True)

    def leave_all(self, group_id: str) -> None:
        for name in list(self.groups[group_id].members):
            self.leave(group_id, name)

    def newer(self, group_id: str) -> None:
        """Something of a group with records of each member's own."""
        rng, group = self.rng, self.groups[group_id]
        if group.kind == "Classic":
            change = self.migrate if rng.random() < 0.5 else self.classic
            change(group_id)
            return
        if group.kind is None:
            group.kind, group.epoch = rng.choice(("Consumer", "Consumer", "Share", "Streams")), rng.choice((0, 0, 30))
        name = rng.choice(("a", "b", "c"))
        what = rng.choice(("join", "join", "leave", "target", "current", "current"))
        if what == "join" or (what == "leave" and name in group.members):
            if what == "join":
                self.member(group_id, name, rng.sample(TOPICS, rng.choice((1, 2))))
            else:
                self.leave(group_id, name)
            group.epoch += 1
            self.other(f"{group.kind}GroupMetadata", group_id, None, epoch=group.epoch)
        if what == "target":
            self.target(group_id)
        if what == "current" and name in group.members:
            self.current(group_id, name)

    def strange(self, group_id: str) -> None:
        raw = self.rng.choice(((b"\x03\xe7abc", b"v"), (b"", b"v"), (b"\x00\x02", b"\x00\x00"), (b"\x00\x01", None)))
        self.put(None, raw=raw)
        self.other("ConsumerGroupRegularExpression", group_id, "t.*", topics=["t"])

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.pass_time()
            group_id = self.rng.choice(list(self.groups))
            what = self.rng.choices(
                (self.commit, self.remove, self.delete, self.classic, self.newer, self.strange, lambda _: self.end()),
                (10, 3, 1, 4, 6, 1, 2),
            )[0]
            what(group_id)


def random_history(seed: int) -> History:
    rng = random.Random(seed)
    writer = _Writer(rng)
    writer.run(rng.choice((3, 12, 40)))
    stable = min(writer.open.values(), default=writer.offset)
    records = writer.records
    if rng.random() < 0.4:
        records = _compacted(rng, records, rng.randrange(stable + 1))
    return History(f"c{seed}", records, writer.aborted, stable)


def _compacted(rng: random.Random, records: list[Logged], end: int) -> list[Logged]:
    """As a cleaner leaves what was before `end`: of each key the last record, and not every tombstone."""
    last = {_key(one): one.offset for one in records if one.offset < end and one.producer_id < 0}
    drops = rng.random() < 0.5
    return [
        one
        for one in records
        if one.offset >= end
        or one.producer_id >= 0
        or (last[_key(one)] == one.offset and not (drops and one.value is None and one.raw is None))
    ]


def _key(one: Logged) -> object:
    return one.raw or (type(one.key), *(getattr(one.key, name) for name in (one.key.__slots__ if one.key else ())))
