"""Random series of group requests, written with symbols for member ids so that two brokers can be sent the same."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import RootMessage

TOPICS = ("ta", "tb")
PARTITIONS = 2
BOGUS = "bogus-member"
SHORT_MS = 500
"""A rebalance timeout that runs out in the pauses of some programs."""
PAUSE_S = 1.25

Ids = Mapping[str, str]
"""Symbol → member id at one broker; BOGUS and "" stand for themselves."""


@dataclass(frozen=True)
class Step:
    """A request in one version, to be built with a broker's own ids."""

    text: str
    version: int
    build: Callable[[Ids, Ids], RootMessage]
    """From member ids by symbol and topic ids by name."""
    new_member: str | None = None
    """The symbol of the member id that the answer may bring."""
    is_read: bool = False
    """Whether asking again changes nothing."""
    pause_s: float = 0.0
    """How long to do nothing before."""
    member: str | None = None
    """The symbol of the member that may have to wait for the answer."""


@dataclass
class Program:
    """Draws one step after the other, with what the answers said so far in mind."""

    seed: int
    attempt: int = 0
    """Another attempt is the same program in groups of other names."""
    groups: list[str] = field(default_factory=list)
    members: list[tuple[str, str]] = field(default_factory=list)
    """(group, symbol) of every member id that was ever given out."""
    instance_by_member: dict[str, str] = field(default_factory=dict)
    generation_by_group: dict[str, int] = field(default_factory=dict)
    leader_by_group: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._count = 0
        self.rebalance_timeout_ms = self._random.choice([60_000, 60_000, SHORT_MS])
        self.protocol_type = self._random.choice(["consumer"] * 4 + ["connect"])
        self._name = f"{self.seed}.{self.attempt}"
        self.groups = [f"group-{self._name}-{number}" for number in range(self._random.choice([1, 1, 2]))]
        self.unknown_group = f"unknown-{self._name}"
        self.has_short_timers = self.rebalance_timeout_ms == SHORT_MS

    def next(self) -> Step:
        self._count += 1
        weights = {
            self._join: 26,
            self._sync: 18,
            self._settle: 14,
            self._commit: 12,
            self._leave: 9,
            self._heartbeat: 8,
            self._fetch: 8,
            self._delete_offsets: 6,
            self._describe: 5,
            self._list: 3,
            self._delete_groups: 2,
        }
        (draw,) = self._random.choices(list(weights), list(weights.values()))
        return draw()

    # --- choices

    def _group(self) -> str:
        return self._random.choice([*self.groups * 8, "", self.unknown_group])

    def _member_of(self, group: str) -> str:
        """A symbol: nearly always of a member of the group, sometimes of nobody."""
        mine = [symbol for owner, symbol in self.members[-6:] if owner == group]
        if mine and self._random.random() < 0.9:
            return self._random.choice(mine)
        return self._random.choice(["", BOGUS])

    def _generation_of(self, group: str) -> int:
        generation = self.generation_by_group.get(group, 0)
        return self._random.choice([generation] * 8 + [generation - 1, -1])

    def _instance_of(self, symbol: str) -> str | None:
        instance_id = self.instance_by_member.get(symbol)
        return self._random.choice([instance_id] * 9 + ["unknown-instance"])

    def _offers(self) -> dict[str, bytes]:
        names = self._random.choice([("range",)] * 5 + [("range", "sticky"), ("sticky", "range"), ("sticky",), ()])
        topics = self._random.choice([TOPICS[:1], TOPICS[:1], TOPICS, ()])
        metadata = bytearray((0, 0))
        m.ConsumerProtocolSubscription(topics=topics).write(metadata, 0)
        return dict.fromkeys(names, bytes(metadata))

    def _version(self, low: int, high: int) -> int:
        return self._random.choice([high, self._random.randint(low, high)])

    # --- membership

    def _join(self) -> Step:
        group = self._group()
        symbol = self._member_of(group) if self._random.random() < 0.6 else ""
        instance_id = self._instance_of(symbol) if symbol else None
        if not symbol and self._random.random() < 0.3:
            instance_id = self._random.choice(["instance-1", "instance-2"])
        return self._join_as(group, symbol, instance_id)

    def _join_as(
        self, group: str, symbol: str, instance_id: str | None, offers: dict[str, bytes] | None = None
    ) -> Step:
        version = self._version(0, 9)
        offers = self._offers() if offers is None else offers
        session_ms = self._random.choice([60_000] * 12 + [500, 99_999_999])
        protocol_type = self._random.choice([self.protocol_type] * 15 + ["other", ""])
        if version < 5:
            instance_id = None
        new_member = None if symbol else f"m{self._count}"
        if new_member and instance_id:
            self.instance_by_member[new_member] = instance_id

        def build(ids: Ids, topics: Ids) -> RootMessage:
            return m.JoinGroupRequest(
                group,
                session_ms,
                self.rebalance_timeout_ms if version else -1,
                resolve(ids, symbol),
                instance_id,
                protocol_type,
                [m.JoinGroupRequestProtocol(name, metadata) for name, metadata in offers.items()],
            )

        what = f"{group} as {symbol or 'new'} / {instance_id} of {protocol_type} offering {sorted(offers)}"
        return Step(f"join v{version} {what} session {session_ms}", version, build, new_member, member=symbol)

    def _sync(self) -> Step:
        group = self._group()
        symbol = self._member_of(group)
        if self._random.random() < 0.6:
            symbol = self.leader_by_group.get(group, symbol)
        return self._sync_as(group, symbol, self._generation_of(group))

    def _sync_as(self, group: str, symbol: str, generation: int) -> Step:
        version = self._version(0, 5)
        instance_id = self._instance_of(symbol) if version >= 3 else None
        named: tuple[str | None, str | None] = (None, None)
        if version >= 5:
            named = (self.protocol_type, self._random.choice(["range"] * 8 + ["sticky", None]))
        assigned = [one for owner, one in self.members if owner == group and self._random.random() < 0.9]

        def build(ids: Ids, topics: Ids) -> RootMessage:
            assignments = [m.SyncGroupRequestAssignment(resolve(ids, one), one.encode()) for one in assigned]
            return m.SyncGroupRequest(group, generation, resolve(ids, symbol), instance_id, *named, assignments)

        what = f"sync v{version} {group} {symbol} generation {generation} {instance_id} {named}"
        return Step(what, version, build, member=symbol)

    def _settle(self) -> Step:
        """What a well-behaved client would do next, so that groups get somewhere."""
        group = self._random.choice(self.groups)
        leader = self.leader_by_group.get(group)
        mine = [symbol for owner, symbol in self.members if owner == group]
        if leader and self._random.random() < 0.5:
            return self._sync_as(group, leader, self.generation_by_group[group])
        if mine:
            symbol = self._random.choice(mine[-3:])
            return self._join_as(
                group, symbol, self.instance_by_member.get(symbol), {"range": b"\0\0\0\0\0\0\xff\xff\xff\xff"}
            )
        return self._join_as(group, "", None, {"range": b"\0\0\0\0\0\0\xff\xff\xff\xff"})

    def _heartbeat(self) -> Step:
        group, version = self._group(), self._version(0, 4)
        symbol = self._member_of(group)
        generation = self._generation_of(group)
        instance_id = self._instance_of(symbol) if version >= 3 else None

        def build(ids: Ids, topics: Ids) -> RootMessage:
            return m.HeartbeatRequest(group, generation, resolve(ids, symbol), instance_id)

        return Step(f"heartbeat v{version} {group} {symbol} {generation} {instance_id}", version, build)

    def _leave(self) -> Step:
        group, version = self._group(), self._version(0, 5)
        symbols = [self._member_of(group) for _ in range(1 if version < 3 else self._random.choice([1, 1, 2, 3]))]
        instances = [self._random.choice([None, self._instance_of(one), "instance-1"]) for one in symbols]

        def build(ids: Ids, topics: Ids) -> RootMessage:
            if version < 3:
                return m.LeaveGroupRequest(group, resolve(ids, symbols[0]))
            members = [
                m.MemberIdentity(resolve(ids, one), instance) for one, instance in zip(symbols, instances, strict=True)
            ]
            return m.LeaveGroupRequest(group, members=members)

        return Step(f"leave v{version} {group} {symbols} {instances}", version, build)

    # --- offsets

    def _commit(self) -> Step:
        # Not the empty group id, which all programs have in common.
        group, version = self._group() or self.groups[0], self._version(2, 10)
        symbol = self._random.choice(["", self._member_of(group)])
        generation = self._generation_of(group) if symbol else self._random.choice([-1, -1, 0])
        instance_id = self._instance_of(symbol) if version >= 7 and symbol else None
        # Apache Kafka remembers the group of a commit that was refused completely until the partition's next write.
        metadata = self._random.choice(["", None, "text", "x" * 4096, *(["x" * 4097] if generation >= 0 else [])])
        topics = self._random.sample([*TOPICS, "no-such-topic"], self._random.choice([1, 2, 3]))
        partitions = self._random.sample(range(PARTITIONS + 1), self._random.choice([1, 2]))
        offset = self._random.randint(-1, 100)

        def build(ids: Ids, topic_ids: Ids) -> RootMessage:
            wanted = [
                m.OffsetCommitRequestPartition(one, offset, 0 if version >= 6 else -1, metadata) for one in partitions
            ]
            named = [
                m.OffsetCommitRequestTopic(*_name_or_id(one, topic_ids, by_id=version >= 10), wanted) for one in topics
            ]
            return m.OffsetCommitRequest(group, generation, resolve(ids, symbol), instance_id, -1, named)

        what = f"{group} {symbol} {generation} {instance_id} {topics} {partitions} = {offset} {(metadata or '')[:9]}"
        return Step(f"commit v{version} {what}", version, build)

    def _fetch(self) -> Step:
        version = self._version(1, 10)
        groups = [self._group() for _ in range(1 if version < 8 else self._random.choice([1, 2]))]
        names = self._random.sample([*TOPICS, "no-such-topic"], self._random.choice([0, 1, 2, 3]))
        is_all = version >= 2 and self._random.random() < 0.5
        require_stable = version >= 7 and self._random.random() < 0.3

        def build(ids: Ids, topic_ids: Ids) -> RootMessage:
            if version < 8:
                old = None if is_all else [m.OffsetFetchRequestTopic(one, [1, 0]) for one in names]
                return m.OffsetFetchRequest(groups[0], old, require_stable=require_stable)
            topics = None
            if not is_all:
                topics = [
                    m.OffsetFetchRequestTopics(*_name_or_id(one, topic_ids, by_id=version >= 10), [1, 0])
                    for one in names
                ]
            asked = [m.OffsetFetchRequestGroup(one, topics=topics) for one in dict.fromkeys(groups)]
            return m.OffsetFetchRequest(groups=asked, require_stable=require_stable)

        what = f"fetch v{version} {groups} {'all' if is_all else names} stable {require_stable}"
        return Step(what, version, build, is_read=True)

    def _delete_offsets(self) -> Step:
        group = self._group()
        names = self._random.sample([*TOPICS, "no-such-topic"], self._random.choice([0, 1, 2, 3]))
        partitions = self._random.sample(range(PARTITIONS + 1), self._random.choice([0, 1, 2]))

        def build(ids: Ids, topics: Ids) -> RootMessage:
            wanted = [m.OffsetDeleteRequestPartition(one) for one in partitions]
            return m.OffsetDeleteRequest(group, [m.OffsetDeleteRequestTopic(one, wanted) for one in names])

        return Step(f"delete-offsets {group} {names} {partitions}", 0, build)

    # --- groups

    def _describe(self) -> Step:
        groups, version = list(dict.fromkeys([self._group(), self._group()])), self._version(0, 6)
        pause_s = PAUSE_S if self.has_short_timers and self._random.random() < 0.7 else 0.0

        def build(ids: Ids, topics: Ids) -> RootMessage:
            return m.DescribeGroupsRequest(groups, version >= 3)

        return Step(f"describe v{version} {groups} after {pause_s} s", version, build, is_read=True, pause_s=pause_s)

    def _list(self) -> Step:
        version = self._version(0, 5)
        states = self._random.choice([(), ("Stable",), ("empty", " PreparingRebalance")]) if version >= 4 else ()
        types = self._random.choice([(), ("classic",), ("Consumer",)]) if version >= 5 else ()

        def build(ids: Ids, topics: Ids) -> RootMessage:
            return m.ListGroupsRequest(states, types)

        return Step(f"list v{version} {states} {types}", version, build, is_read=True)

    def _delete_groups(self) -> Step:
        groups, version = [self._group(), self._group()], self._version(0, 2)

        def build(ids: Ids, topics: Ids) -> RootMessage:
            return m.DeleteGroupsRequest(groups)

        return Step(f"delete v{version} {groups}", version, build)


def resolve(ids: Ids, symbol: str) -> str:
    """A symbol's member id; what has none stands for itself."""
    return ids.get(symbol, symbol)


def _name_or_id(topic: str, topic_ids: Ids, *, by_id: bool) -> tuple[str, bytes]:
    if not by_id:
        return topic, bytes(16)
    return "", bytes.fromhex(topic_ids.get(topic, "0123456789abcdef" * 2))
