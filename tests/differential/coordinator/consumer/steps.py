"""Random programs of requests to one consumer group, by members of both protocols and by operators."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.differential.coordinator.consumer.side import TOPICS, Side

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    encode_assignment,
    encode_subscription,
)
from groupkeeper.protocol.messages import incremental_alter_configs_request
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import TopicPartitions
from groupkeeper.protocol.messages.consumer_protocol_assignment import TopicPartition as Assigned
from groupkeeper.protocol.messages.consumer_protocol_subscription import TopicPartition
from groupkeeper.protocol.primitives import ZERO_UUID, RootMessage

STEPS = 30
GROUP_SETTINGS = (
    ("consumer.session.timeout.ms", ("45000", "60000", "50000", "1", "many")),
    ("consumer.heartbeat.interval.ms", ("5000", "7000", "15000", "1")),
    ("consumer.no.such.setting", ("1",)),
)
GROUP_RESOURCE = 32
NOBODYS_ID = b"\1" * 16

Build = Callable[[Side], RootMessage]


@dataclass(frozen=True)
class Step:
    """What a member, or an operator, asks; built with what a side told it. `regex` is the expression that the member
    subscribes to if it is answered without an error: None is the one it had.
    """

    text: str
    who: str
    version: int
    build: Build
    regex: str | None = None


@dataclass(frozen=True)
class Change:
    """What happens to the topics of a cluster."""

    text: str
    act: Callable[[Side], None]


class Program:
    """Draws one step after the other."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.group_id = f"consumers-{seed}"
        self._instances = {name: f"i{name}" for name in "abcd" if self._random.random() < 0.4}
        self._has_classic = self._random.random() < 0.6
        self.has_regexes = self._random.random() < 0.4
        self._has_changes = self._random.random() < 0.4
        self._own = [f"p{seed}a", f"p{seed}b"] if self._has_changes else []
        self._counts: dict[str, int] = {}
        # Each matches something, and a member says names, too, unless the expression has been resolved:
        # docs/design/coordinator.md says what else is different.
        self._regexes = ["d[ab]", f"(da|p{seed}.*)"]

    def steps(self) -> Iterator[Step | Change]:
        draws: dict[Callable[[], Step | Change], int] = {
            self._join: 8,
            self._beat: 16,
            self._report: 10,
            self._leave: 4,
            self._commit: 6,
            self._fetch: 3,
            self._describe: 4,
            self._describe_classic: 1,
            self._list: 1,
            self._delete_offsets: 1,
            self._delete_group: 1,
            self._settings: 1,
            self._odd: 4,
        }
        if self._has_classic:
            draws |= {self._join_classic: 6, self._sync: 5, self._beat_classic: 4, self._leave_classic: 2}
        if self._has_changes:
            draws |= {self._change_topics: 5}
        if self.has_regexes:
            yield self._join(is_first=True)
        for _ in range(STEPS):
            yield self._random.choices(list(draws), list(draws.values()))[0]()

    def _who(self) -> str:
        return self._random.choice("abcd")

    def _names(self) -> list[str]:
        # Not nothing: Apache Kafka assigns to a new member without subscription what the others subscribe to.
        choices = [["da"], ["da", "db"], ["db"], ["da", "no-such-topic"], ["no-such-topic"]]
        if self._own:
            choices += [self._own[:1], self._own, ["da", *self._own], ["db", self._own[1]]]
        return self._random.choice(choices)

    def _regex(self) -> str:
        return self._random.choice(self._regexes)

    def _epoch(self, told: int, shift: int) -> int:
        return max(told + shift, 0)

    # --- topics

    def _change_topics(self) -> Change:
        name = self._random.choice(self._own)
        count = self._counts.get(name, 0)
        if not count:
            self._counts[name] = new_count = self._random.choice((1, 2, 3))
            return Change(f"make {name} of {new_count}", lambda side: side.make_topic(name, new_count))
        if self._random.random() < 0.5:
            self._counts[name] = grown = count + self._random.choice((1, 2))
            return Change(f"grow {name} to {grown}", lambda side: side.grow_topic(name, grown))
        self._counts[name] = 0
        return Change(f"delete {name}", lambda side: side.delete_topic(name))

    # --- the consumer protocol

    def _join(self, *, is_first: bool = False) -> Step:
        who, names, version = self._who(), self._names(), self._random.choice((0, 1, 1))
        regex = self._regex() if self.has_regexes and version and self._random.random() < 0.6 else None
        is_alone = regex is not None and self._random.random() < 0.7
        assignor = self._random.choice((None,) * 6 + ("range",) * 3 + ("no-such-assignor",))
        instance_id = self._instances.get(who)
        # A static member comes back under another id now and then.
        suffix = self._random.choice(("", "", ".2")) if instance_id else ""
        rack_id = self._random.choice((None, "r1"))
        timeout_ms = self._random.choice((60_000, 300_000))

        def build(side: Side) -> RootMessage:
            belief = side.belief(who)
            belief.owned = []
            if suffix and belief.member_id == who:
                belief.member_id = who + suffix
            said = [] if is_alone and (is_first or regex in side.resolved()[1]) else names
            return m.ConsumerGroupHeartbeatRequest(
                side.group_id, belief.member_id, 0, instance_id, rack_id, timeout_ms, said, regex, assignor, []
            )

        return Step(f"join {who} {instance_id} {names} {regex} {assignor} {suffix}", who, version, build, regex)

    def _beat(self) -> Step:
        who, shift = self._who(), self._random.choice((0,) * 8 + (-1, 1, -2))
        names = self._random.choice((None,) * 4 + (self._names(),))
        regex = None
        if self.has_regexes and self._random.random() < 0.25:
            regex, names = self._random.choice((self._regex(), self._regex(), "")), self._names()

        def build(side: Side) -> RootMessage:
            belief = side.belief(who)
            epoch = self._epoch(belief.epoch, shift) or 7
            return m.ConsumerGroupHeartbeatRequest(
                side.group_id,
                belief.member_id,
                epoch,
                self._instances.get(who),
                subscribed_topic_names=names,
                subscribed_topic_regex=regex,
            )

        return Step(f"beat {who} epoch {shift:+} {names} {regex}", who, 1, build, regex)

    def _report(self) -> Step:
        """Says what it has: all, less, or more than it was told."""
        who, shift = self._who(), self._random.choice((0,) * 8 + (-1, 1))
        manner = self._random.choice(("all", "all", "all", "none", "lies"))
        names = self._random.choice((None, self._names()))
        is_full = names is not None

        def build(side: Side) -> RootMessage:
            belief = side.belief(who)
            owned = {"all": belief.owned, "none": [], "lies": [(side.topic_ids["da"], [0, 1, 2])]}[manner]
            return m.ConsumerGroupHeartbeatRequest(
                side.group_id,
                belief.member_id,
                self._epoch(belief.epoch, shift) or 7,
                self._instances.get(who),
                rebalance_timeout_ms=60_000 if is_full else -1,
                subscribed_topic_names=names,
                topic_partitions=[TopicPartitions(topic_id, some) for topic_id, some in owned],
            )

        return Step(f"report {who} {manner} epoch {shift:+} {names}", who, 1, build)

    def _leave(self) -> Step:
        who, epoch = self._who(), self._random.choice((-1, -1, -2))

        def build(side: Side) -> RootMessage:
            instance_id = self._instances.get(who)
            return m.ConsumerGroupHeartbeatRequest(side.group_id, side.belief(who).member_id, epoch, instance_id)

        return Step(f"leave {who} {epoch}", who, 1, build)

    def _odd(self) -> Step:
        """Requests that are refused, each for a reason of its own."""
        fields = self._random.choice(
            (
                {"group_id": ""},
                {"group_id": "nobody's", "member_epoch": 3},
                {"member_id": ""},
                {"member_id": "", "member_epoch": 5},
                {"member_epoch": -3},
                {"member_epoch": -2},
                {"member_epoch": -1},
                {"instance_id": ""},
                {"instance_id": "unknown", "member_epoch": 4},
                {"instance_id": "unknown", "member_epoch": -1},
                {"instance_id": "ia", "member_epoch": 4},
                {"instance_id": "ib", "member_epoch": -2},
                {"rack_id": " "},
                {"rebalance_timeout_ms": -1},
                {"topic_partitions": None},
                {"subscribed_topic_names": None},
                {"server_assignor": "no-such-assignor"},
                {"subscribed_topic_regex": "["},
                {"member_epoch": 9},
            )
        )
        version = self._random.choice((0, 1)) if "subscribed_topic_regex" not in fields else 1
        if fields == {"member_id": ""}:
            version = 1

        def build(side: Side) -> RootMessage:
            values = {
                "group_id": side.group_id,
                "member_id": "stranger",
                "member_epoch": 0,
                "rebalance_timeout_ms": 1000,
                "subscribed_topic_names": ["da"],
                "topic_partitions": [],
                **fields,
            }
            return m.ConsumerGroupHeartbeatRequest(**values)  # type: ignore[arg-type]

        return Step(f"odd v{version} {fields}", "stranger", version, build)

    # --- the classic protocol

    def _join_classic(self) -> Step:
        """Static, so that members sort alike. A classic group may keep it waiting for others."""
        who, names = self._random.choice("xy"), self._names()
        keeps = self._random.random() < 0.5
        protocol = self._random.choice(("range",) * 8 + ("other",))
        session_ms = self._random.choice((45_000,) * 8 + (1,))

        def build(side: Side) -> RootMessage:
            belief = side.belief(who)
            # In an order that doesn't come from topic ids.
            owned = sorted((side.name_by_id[one].rstrip("'"), some) for one, some in belief.owned) if keeps else []
            owned_partitions = [TopicPartition(*one) for one in owned]
            said = encode_subscription(ConsumerProtocolSubscription(topics=names, owned_partitions=owned_partitions), 1)
            member_id = "" if belief.member_id == who else belief.member_id
            protocols = [m.JoinGroupRequestProtocol(protocol, said)]
            return m.JoinGroupRequest(side.group_id, session_ms, 60_000, member_id, f"i{who}", "consumer", protocols)

        return Step(f"classic join {who} {names} {protocol}", who, 9, build)

    def _sync(self) -> Step:
        who, shift = self._random.choice("xy"), self._random.choice((0, 0, 0, 0, 1))
        gives_all = self._random.random() < 0.7

        def build(side: Side) -> RootMessage:
            belief = side.belief(who)
            # Only the leader of a classic group is listened to.
            plan = (("x", [0]), ("y", [1, 2])) if gives_all else (("x", [0, 1, 2]),)
            given = [
                m.SyncGroupRequestAssignment(
                    side.belief(one).member_id, encode_assignment(ConsumerProtocolAssignment([Assigned("da", some)]), 1)
                )
                for one, some in plan
            ]
            return m.SyncGroupRequest(
                side.group_id, belief.epoch + shift, belief.member_id, f"i{who}", "consumer", "range", given
            )

        return Step(f"sync {who} {shift:+}", who, 5, build)

    def _beat_classic(self) -> Step:
        who, shift = self._random.choice("xya"), self._random.choice((0, 0, 0, 0, -1))

        def build(side: Side) -> RootMessage:
            belief = side.belief(who)
            return m.HeartbeatRequest(side.group_id, belief.epoch + shift, belief.member_id, f"i{who}")

        return Step(f"classic beat {who} {shift:+}", who, 4, build)

    def _leave_classic(self) -> Step:
        """By member id or instance id, of either protocol."""
        who = self._random.sample("xyab", self._random.choice((1, 1, 2)))
        by_instance = self._random.random() < 0.5

        def build(side: Side) -> RootMessage:
            members = [
                m.MemberIdentity("", f"i{one}") if by_instance else m.MemberIdentity(side.belief(one).member_id, None)
                for one in who
            ]
            return m.LeaveGroupRequest(side.group_id, members=members)

        return Step(f"classic leave {who} by instance {by_instance}", who[0], 5, build)

    # --- offsets

    def _commit(self) -> Step:
        who, version = self._random.choice("abcdx"), self._random.choice((8, 9, 9, 10))
        shift, offset = self._random.choice((0, 0, 0, -1, -2, 1)), self._random.randint(0, 99)
        name, partition = self._random.choice(("da", "db", *self._own)), self._random.choice((0, 1))
        is_simple = self._random.random() < 0.15

        def build(side: Side) -> RootMessage:
            belief = side.belief(who)
            named = ("", side.topic_ids.get(name, NOBODYS_ID)) if version >= 10 else (name, ZERO_UUID)
            wanted = [m.OffsetCommitRequestTopic(*named, [m.OffsetCommitRequestPartition(partition, offset)])]
            if is_simple:
                return m.OffsetCommitRequest(side.group_id, topics=wanted)
            return m.OffsetCommitRequest(side.group_id, belief.epoch + shift, belief.member_id, topics=wanted)

        what = f"{name}/{partition}={offset} epoch {shift:+} simple {is_simple}"
        return Step(f"commit v{version} {who} {what}", who, version, build)

    def _fetch(self) -> Step:
        who, shift, version = self._random.choice("abcdx"), self._random.choice((0, 0, -1, 1)), 9
        is_named, asks_all = self._random.random() < 0.7, self._random.random() < 0.5

        def build(side: Side) -> RootMessage:
            belief = side.belief(who)
            topics = None if asks_all else [m.OffsetFetchRequestTopics("da", partition_indexes=[0, 1])]
            group = m.OffsetFetchRequestGroup(side.group_id, topics=topics)
            if is_named:
                group = m.OffsetFetchRequestGroup(side.group_id, belief.member_id, belief.epoch + shift, topics)
            return m.OffsetFetchRequest(groups=[group])

        return Step(f"fetch {who} {shift:+} named {is_named}", who, version, build)

    def _delete_offsets(self) -> Step:
        def build(side: Side) -> RootMessage:
            topics = [
                m.OffsetDeleteRequestTopic(one, [m.OffsetDeleteRequestPartition(0)]) for one in (*TOPICS, *self._own)
            ]
            return m.OffsetDeleteRequest(side.group_id, topics)

        return Step("delete offsets", "", 0, build)

    # --- groups

    def _describe(self) -> Step:
        version = self._random.choice((0, 1, 1))
        text = f"describe v{version}"
        return Step(text, "", version, lambda side: m.ConsumerGroupDescribeRequest([side.group_id, ""]))

    def _describe_classic(self) -> Step:
        version = self._random.choice((5, 6))
        return Step(f"describe classic v{version}", "", version, lambda side: m.DescribeGroupsRequest([side.group_id]))

    def _list(self) -> Step:
        states = self._random.choice(((), ("Stable",), ("assigning", "Empty"), ("Reconciling",)))
        types = self._random.choice(((), ("consumer",), ("Classic",)))
        return Step(f"list {states} {types}", "", 5, lambda side: m.ListGroupsRequest(states, types))

    def _delete_group(self) -> Step:
        return Step("delete", "", 2, lambda side: m.DeleteGroupsRequest([side.group_id]))

    def _settings(self) -> Step:
        name, values = self._random.choice(GROUP_SETTINGS)
        value = self._random.choice(values)

        def build(side: Side) -> RootMessage:
            config = incremental_alter_configs_request.AlterableConfig(name, 0, value)
            resource = incremental_alter_configs_request.AlterConfigsResource(GROUP_RESOURCE, side.group_id, [config])
            return incremental_alter_configs_request.IncrementalAlterConfigsRequest([resource])

        return Step(f"set {name}={value}", "", 1, build)
