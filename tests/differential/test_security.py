"""Random ACLs on Apache Kafka 4.3.1 and on our broker: what a client then gets from every API that asks for rights.
SCRAM users and quotas, whose APIs need the same start, are compared as well.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from tests.broker.test_cluster_apis import part, plain
from tests.differential.wire import Connection
from tools.apache_kafka import ApacheKafka, ApacheKafkaUnavailable, fetch, why_unavailable

from groupkeeper.protocol.framing import request_class
from groupkeeper.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from groupkeeper.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from groupkeeper.protocol.messages.describe_acls_request import DescribeAclsRequest
from groupkeeper.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from groupkeeper.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from groupkeeper.protocol.primitives import Message
from groupkeeper.protocol.record_batch import Record, write_batch
from groupkeeper.testing.background import BackgroundBroker

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(900)]

FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
PROGRAMS = int(os.environ.get("DIFFERENTIAL_PROGRAMS", "0")) or 60
SETTLED_S = 20.0
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = {"admin": "admin-secret", "alice": "alice-secret"}
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": MODULE
    + "".join(f' user_{user}="{secret}"' for user, secret in USERS.items())
    + ";",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    "delegation.token.secret.key": "a long secret of the cluster",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
TOPICS, GROUPS, TRANSACTIONS = ("ta", "tb"), ("ga", "gb"), ("xa", "xb")
NAMES = {2: ("ta", "tb", "t", "*", "gone"), 3: ("ga", "gb", "g", "*"), 4: ("kafka-cluster",), 5: ("xa", "x", "*")}
ALSO_GONE = (*TOPICS, "gone")
UNKNOWN_PRODUCER = 9_999_999
EVERYTHING = (1, None, 1, None, None, 1, 1)
TOLD = frozenset(
    "error_code name user topic topic_name group_id key resource_name transactional_id topic_authorized_operations "
    "cluster_authorized_operations authorized_operations partition_index".split()
)
BATCH = write_batch([Record(b"k", b"v", timestamp=1)])


class Side:
    """One broker, as its super user and as alice."""

    def __init__(self, address: str) -> None:
        self.admin, self.alice = Connection(address), Connection(address)
        for connection, user in ((self.admin, "admin"), (self.alice, "alice")):
            self.ask(connection, SaslHandshakeRequest("PLAIN"), 1)
            token = b"\0" + user.encode() + b"\0" + USERS[user].encode()
            assert not self.ask(connection, SaslAuthenticateRequest(token), 2).error_code

    def ask(self, connection: Connection, request: Any, version: int) -> Any:
        connection.send(request, version)
        answer = connection.receive(30)
        assert answer is not None, request
        return answer

    def prepare(self) -> None:
        topics = [part(19, "CreatableTopic", name=name, num_partitions=1, replication_factor=1) for name in TOPICS]
        self.ask(self.admin, request_class(19)(topics=topics, timeout_ms=20_000), 7)
        deadline = time.monotonic() + 60
        for key_type, key in ((0, "ga"), (1, "xa")):
            while (
                self.ask(self.admin, request_class(10)(key_type=key_type, coordinator_keys=[key]), 4)
                .coordinators[0]
                .error_code
            ):
                assert time.monotonic() < deadline
        while self.ask(self.admin, *battery()["InitProducerId xa"]).error_code:
            assert time.monotonic() < deadline
        for group in GROUPS:
            while shape(self.ask(self.admin, *battery()[f"OffsetCommit {group}"]))["topics"][-1]["partitions"][0][
                "error_code"
            ]:
                assert time.monotonic() < deadline

    def hold(self, acls: list[AclCreation]) -> list[Any]:
        """Has these ACLs and no others; returns what Kafka said to each."""
        self.ask(self.admin, DeleteAclsRequest([DeleteAclsFilter(*EVERYTHING)]), 3)
        self._settle(0)
        results = self.ask(self.admin, CreateAclsRequest(acls), 3).results
        kept = {repr(plain(acl)) for acl, one in zip(acls, results, strict=True) if not one.error_code}
        self._settle(len(kept))
        return [(one.error_code, one.error_message) for one in results]

    def acls(self, *wanted: Any) -> list[Any]:
        answer = self.ask(self.admin, DescribeAclsRequest(*wanted), 3)
        found = [
            (each.resource_type, each.resource_name, each.pattern_type, *(getattr(acl, name) for name in acl.__slots__))
            for each in answer.resources
            for acl in each.acls
        ]
        return [answer.error_code, answer.error_message, sorted(found)]

    def _settle(self, count: int) -> None:
        deadline = time.monotonic() + SETTLED_S
        while len(self.acls(*EVERYTHING)[2]) != count:
            assert time.monotonic() < deadline


def of(key: int, /, *values: Any, **fields: Any) -> Any:
    """A request of an API."""
    return request_class(key)(*values, **fields)


def each(key: int, kind: str, names: Iterable[str], /, field: str = "name", **more: Any) -> list[Any]:
    """A struct inside a request for each name."""
    return [part(key, kind, **{field: name}, **more) for name in names]


def battery() -> dict[str, tuple[Any, int]]:
    """Requests that leave things as they are, by their names, with versions."""
    found = {**of_cluster(), **of_settings(), **of_topics(), **of_records()}
    for group in GROUPS:
        found |= {f"{name} {group}": asked for name, asked in {**of_group(group), **of_other_groups(group)}.items()}
    for name in TRANSACTIONS:
        found |= {f"{kind} {name}": asked for kind, asked in of_transaction(name).items()}
    return found


def of_cluster() -> dict[str, tuple[Any, int]]:
    return {
        "DescribeCluster": (of(60, include_cluster_authorized_operations=True), 1),
        "DescribeGroups": (of(15, [*GROUPS, "gone"], True), 5),
        "ConsumerGroupDescribe": (of(69, [*GROUPS, "gone"], True), 1),
        "ShareGroupDescribe": (of(77, [*GROUPS, "gone"], True), 1),
        "StreamsGroupDescribe": (of(89, [*GROUPS, "gone"], True), 0),
        "ListGroups": (of(16), 4),
        "ListTransactions": (of(66), 1),
        "DescribeTransactions": (of(65, [*TRANSACTIONS]), 0),
        "InitProducerId": (of(22, None, 1000), 4),
        "DeleteGroups": (of(42, ["gone", "g-gone"]), 2),
        # Kafka does not answer one without names of a client that may not.
        "DescribeUserScramCredentials": (of(50, each(50, "UserName", ["gone"])), 0),
        "AlterUserScramCredentials": (of(51, each(51, "ScramCredentialDeletion", ["gone"], mechanism=1), []), 0),
        "DescribeClientQuotas": (of(48, [], False), 1),
        "AlterClientQuotas": (of(49, [], True), 1),
        "DescribeAcls": (DescribeAclsRequest(*EVERYTHING), 3),
        "DeleteAcls": (DeleteAclsRequest([DeleteAclsFilter(2, "none", 3, None, None, 1, 1)]), 3),
        "DescribeLogDirs": (of(35, None), 4),
        "ListPartitionReassignments": (of(46, 5000, None), 0),
        "ElectLeaders": (of(43, 0, each(43, "TopicPartitions", ["ta"], "topic", partitions=[0]), 5000), 2),
        "UpdateFeatures": (of(57, 5000, [], True), 1),
        "WriteTxnMarkers": (of(27, []), 1),
        "FindCoordinator of transactions": (of(10, key_type=1, coordinator_keys=[*TRANSACTIONS]), 4),
        "FindCoordinator of groups": (of(10, key_type=0, coordinator_keys=[*GROUPS]), 4),
    }


def of_settings() -> dict[str, tuple[Any, int]]:
    described = [
        part(32, "DescribeConfigsResource", resource_type=kind, resource_name=name)
        for kind, name in ((2, "ta"), (2, "gone"), (4, "1"), (32, "ga"))
    ]
    changed = [
        part(
            44,
            "AlterConfigsResource",
            resource_type=kind,
            resource_name=name,
            configs=each(44, "AlterableConfig", [setting], config_operation=0, value=value),
        )
        for kind, name, setting, value in (
            (2, "ta", "retention.ms", "1"),
            (4, "1", "log.cleaner.threads", "1"),
            (32, "ga", "consumer.heartbeat.interval.ms", "5000"),
        )
    ]
    return {
        "DescribeConfigs": (of(32, described), 4),
        "IncrementalAlterConfigs": (of(44, changed, True), 1),
        "ListConfigResources": (of(74, []), 1),
    }


def of_topics() -> dict[str, tuple[Any, int]]:
    named = each(3, "MetadataRequestTopic", ALSO_GONE)
    new = each(19, "CreatableTopic", ["t-new", "other-new", "ta"], num_partitions=1, replication_factor=1)
    return {
        "Metadata": (of(3, named, False, True, True), 9),
        "Metadata of all": (of(3, None, False, True, True), 9),
        "DescribeTopicPartitions": (of(75, each(75, "TopicRequest", ALSO_GONE)), 0),
        "CreateTopics": (of(19, new, 5000, True), 7),
        "DeleteTopics": (of(20, topic_names=["gone", "t-gone"], timeout_ms=5000), 5),
        "CreatePartitions": (of(37, each(37, "CreatePartitionsTopic", ALSO_GONE, count=3), 5000, True), 3),
    }


def of_records() -> dict[str, tuple[Any, int]]:
    removed = [part(21, "DeleteRecordsPartition", partition_index=0, offset=0)]
    produced = [part(0, "PartitionProduceData", index=0, records=BATCH)]
    fetched = [part(1, "FetchPartition", partition_max_bytes=100)]
    asked = [part(2, "ListOffsetsPartition", timestamp=-1)]
    epochs = [part(23, "OffsetForLeaderPartition", partition=0, leader_epoch=0)]
    return {
        "DeleteRecords": (of(21, each(21, "DeleteRecordsTopic", TOPICS, partitions=removed), 5000), 2),
        "Produce": (of(0, None, -1, 5000, each(0, "TopicProduceData", TOPICS, partition_data=produced)), 9),
        "Fetch": (of(1, max_wait_ms=0, topics=each(1, "FetchTopic", ALSO_GONE, "topic", partitions=fetched)), 11),
        "ListOffsets": (of(2, topics=each(2, "ListOffsetsTopic", ALSO_GONE, partitions=asked)), 7),
        "OffsetForLeaderEpoch": (
            of(23, topics=each(23, "OffsetForLeaderTopic", TOPICS, "topic", partitions=epochs)),
            4,
        ),
        "DescribeProducers": (of(61, each(61, "TopicRequest", TOPICS, partition_indexes=[0])), 0),
    }


def of_group(group: str) -> dict[str, tuple[Any, int]]:
    commit = [part(8, "OffsetCommitRequestPartition", partition_index=0, committed_offset=1)]
    fetch = each(9, "OffsetFetchRequestTopics", ALSO_GONE, partition_indexes=[0])
    delete = [part(47, "OffsetDeleteRequestPartition", partition_index=0)]
    protocols = each(11, "JoinGroupRequestProtocol", ["range"], metadata=b"")
    joining = of(11, group, 10_000, 10_000, "absent", protocol_type="consumer", protocols=protocols)
    return {
        "OffsetCommit": (of(8, group, topics=each(8, "OffsetCommitRequestTopic", ALSO_GONE, partitions=commit)), 8),
        "OffsetFetch": (of(9, groups=each(9, "OffsetFetchRequestGroup", [group], "group_id", topics=fetch)), 8),
        "OffsetFetch of all": (of(9, groups=each(9, "OffsetFetchRequestGroup", [group], "group_id", topics=None)), 8),
        "OffsetDelete": (of(47, group, each(47, "OffsetDeleteRequestTopic", ["gone"], partitions=delete)), 0),
        "JoinGroup": (joining, 9),
        "SyncGroup": (of(14, group, 1, "m", protocol_type="c", protocol_name="p"), 5),
        "Heartbeat": (of(12, group, 1, "m"), 4),
        "LeaveGroup": (of(13, group, members=each(13, "MemberIdentity", ["m"], "member_id")), 5),
    }


def of_other_groups(group: str) -> dict[str, tuple[Any, int]]:
    offsets = each(90, "DescribeShareGroupOffsetsRequestTopic", TOPICS, "topic_name", partitions=[0])
    described = each(90, "DescribeShareGroupOffsetsRequestGroup", [group], "group_id", topics=offsets)
    deleted = each(92, "DeleteShareGroupOffsetsRequestTopic", TOPICS, "topic_name")
    return {
        "ConsumerGroupHeartbeat": (of(68, group, "m", 5, subscribed_topic_names=None, topic_partitions=None), 0),
        "ShareGroupHeartbeat": (of(76, group, "m", 5), 1),
        "StreamsGroupHeartbeat": (of(88, group, "m", 5), 0),
        "DescribeShareGroupOffsets": (of(90, described), 0),
        "DeleteShareGroupOffsets": (of(92, group, deleted), 0),
    }


def of_transaction(name: str) -> dict[str, tuple[Any, int]]:
    added = {
        "v3_and_below_transactional_id": name,
        "v3_and_below_producer_id": UNKNOWN_PRODUCER,
        "v3_and_below_topics": each(24, "AddPartitionsToTxnTopic", ALSO_GONE, partitions=[0]),
    }
    commit = [part(28, "TxnOffsetCommitRequestPartition", partition_index=0, committed_offset=1)]
    offsets = each(28, "TxnOffsetCommitRequestTopic", TOPICS, partitions=commit)
    return {
        "InitProducerId": (of(22, name, 60_000), 4),
        "AddPartitionsToTxn": (of(24, **added), 3),
        "AddOffsetsToTxn": (of(25, name, UNKNOWN_PRODUCER, 0, "ga"), 3),
        "EndTxn": (of(26, name, UNKNOWN_PRODUCER, 0, True), 3),
        "TxnOffsetCommit": (of(28, name, "ga", UNKNOWN_PRODUCER, 0, topics=offsets), 3),
    }


def shape(value: object) -> Any:
    """Errors, rights and what they are about; the order within a list doesn't count."""
    if isinstance(value, list | tuple):
        return sorted((shape(one) for one in value), key=repr)
    if isinstance(value, Message):
        parts = {name: getattr(value, name) for name in value.__slots__}
        return {
            name: shape(part)
            for name, part in parts.items()
            if name in TOLD or (name != "configs" and isinstance(part, list | tuple | Message))
        }
    return value


def draw(rng: random.Random) -> AclCreation:
    kind = rng.choice((2, 2, 2, 3, 3, 4, 5))
    pattern = 3 if kind == 4 else rng.choice((3, 3, 4))
    return AclCreation(
        kind,
        rng.choice(NAMES[kind]),
        pattern,
        rng.choice(("User:alice", "User:alice", "User:*", "User:bob", "Group:alice")),
        rng.choice(("*", "*", "*", "127.0.0.1", "10.0.0.1")),
        rng.choice((2, *range(3, 13))),
        rng.choice((3, 3, 3, 2)),
    )


ODD = [
    AclCreation(kind, name, pattern, principal, "*", operation, permission)
    for kind, name, pattern, principal, operation, permission in (
        (4, "other", 3, "User:a", 2, 3),
        (2, "", 3, "User:a", 2, 3),
        (1, "t", 3, "User:a", 2, 3),
        (77, "t", 3, "User:a", 2, 3),
        (2, "t", 1, "User:a", 2, 3),
        (2, "t", 2, "User:a", 2, 3),
        (2, "t", 3, "alice", 2, 3),
        (2, "t", 3, "", 2, 3),
        (2, "t", 3, ":", 2, 3),
        (2, "t", 3, "User:a", 1, 3),
        (2, "t", 3, "User:a", 99, 3),
        (2, "t", 3, "User:a", 2, 1),
        (7, "u", 3, "User:a", 13, 3),
        (6, "owner", 4, "User:a", 8, 2),
        (5, "*", 4, "User:a", 15, 3),
    )
]
FILTERS = [
    (2, "ta", 2, None, None, 1, 1),
    (2, None, 2, None, None, 1, 1),
    (1, "t", 1, None, None, 1, 1),
    (1, "*", 3, None, None, 1, 1),
    (1, "*", 2, None, None, 1, 1),
    (3, None, 4, None, None, 1, 3),
    (1, None, 1, "User:alice", "*", 1, 1),
    (99, None, 1, None, None, 1, 1),
    (1, None, 1, None, None, 77, 1),
    (1, "", 1, "", "", 1, 1),
]


@pytest.fixture(scope="module")
def sides() -> Iterator[tuple[Side, Side]]:
    if reason := why_unavailable():
        pytest.skip(reason)
    try:
        fetch()
    except ApacheKafkaUnavailable as unavailable:
        pytest.skip(str(unavailable))
    listeners = {"listeners": "SASL://127.0.0.1:0", "listener.security.protocol.map": "SASL:SASL_PLAINTEXT"}
    with (
        ApacheKafka(SETTINGS, listeners={"SASL": "SASL_PLAINTEXT"}) as reference,
        BackgroundBroker(properties={**SETTINGS, **listeners}) as ours,
    ):
        both = Side(reference.address("SASL")), Side(ours.bootstrap_servers)
        for side in both:
            side.prepare()
        yield both


def test_odd_acls_and_filters(sides: tuple[Side, Side]) -> None:
    theirs, own = sides
    rng = random.Random(FIRST_SEED)
    for odd in ODD:
        request = CreateAclsRequest([draw(rng), odd])
        answers = [side.ask(side.admin, request, 3).results for side in sides]
        assert list(map(told, answers[1])) == list(map(told, answers[0])), plain(odd)
    acls = [draw(rng) for _ in range(30)]
    assert own.hold(acls) == theirs.hold(acls)
    for wanted in FILTERS:
        assert own.acls(*wanted) == theirs.acls(*wanted), wanted
    deletion = DeleteAclsRequest([DeleteAclsFilter(*wanted) for wanted in FILTERS[:6]])
    assert deleted(own, deletion) == deleted(theirs, deletion)


def deleted(side: Side, deletion: DeleteAclsRequest) -> Any:
    results = side.ask(side.admin, deletion, 3).filter_results
    return [(one.error_code, one.error_message, sorted(map(told, one.matching_acls))) for one in results]


def told(message: Message) -> list[str]:
    return [repr(getattr(message, name)) for name in message.__slots__]


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + PROGRAMS))
def test_same_answers(sides: tuple[Side, Side], seed: int) -> None:
    theirs, own = sides
    rng = random.Random(seed)
    acls = [draw(rng) for _ in range(rng.choice((0, 1, 2, 3, 5, 8)))]
    assert own.hold(acls) == theirs.hold(acls)
    found = {
        name: [shape(side.ask(side.alice, request, version)) for side in (own, theirs)]
        for name, (request, version) in battery().items()
    }
    different = {name: answers for name, answers in found.items() if answers[0] != answers[1]}
    assert not different, repr((different, [plain(acl) for acl in acls]))


def test_scram_users(sides: tuple[Side, Side]) -> None:
    names = ("admin", "fresh", "gone", "twice", "twice", "")
    upsertions = [
        part(51, "ScramCredentialUpsertion", name=name, mechanism=mechanism, iterations=iterations, salt=b"s",
             salted_password=b"x" * 32 if name != "weak" else b"")
        for name, mechanism, iterations in (
            ("fresh", 1, 4096), ("few", 2, 4095), ("many", 1, 16385), ("odd", 7, 5000), ("", 1, 4096),
            ("twice", 1, 4096), ("twice", 2, 4096), ("both", 1, 4096), ("weak", 1, 4096),
        )
    ]  # fmt: skip
    deletions = [part(51, "ScramCredentialDeletion", name=name, mechanism=1) for name in ("gone", "both")]
    asked: list[tuple[Any, int]] = [
        (request_class(51)(deletions, upsertions), 0),
        (request_class(50)([part(50, "UserName", name=name) for name in names]), 0),
        (request_class(50)(None), 0),
        (request_class(51)([part(51, "ScramCredentialDeletion", name="fresh", mechanism=1)], []), 0),
        (request_class(50)([]), 0),
    ]
    for request, version in asked:
        found = []
        for side in sides:
            answer = side.ask(side.admin, request, version)
            results = [[repr(one) for one in told(each) if "object at" not in one] for each in answer.results]
            top = [repr(getattr(answer, name, None)) for name in ("error_code", "error_message")]
            found.append([top, *sorted(results)])
        time.sleep(0.5)  # until Kafka's broker has what its controller answered
        assert found[1] == found[0], plain(request)


ENTITIES: list[list[tuple[str, str | None]]] = [
    [("user", "a")],
    [("user", None)],
    [("client-id", "c")],
    [("user", "a"), ("client-id", "c")],
    [("user", None), ("client-id", None)],
    [("ip", "127.0.0.1")],
    [("ip", None)],
    [("ip", "1.2.3.4"), ("user", "a")],
    [("user", "")],
    [("odd", "x")],
    [],
]
QUOTAS: list[tuple[str, float, bool]] = [
    ("producer_byte_rate", 1000.0, False),
    ("consumer_byte_rate", 1e19, False),
    ("request_percentage", 12.5, False),
    ("controller_mutation_rate", 0.5, False),
    ("connection_creation_rate", 7.0, False),
    ("connection_creation_rate", 1e10, False),
    ("producer_byte_rate", 1.5, False),
    ("producer_byte_rate", 0.0, False),
    ("producer_byte_rate", -1.0, False),
    ("odd_rate", 1.0, False),
    ("producer_byte_rate", 0.0, True),
    ("request_percentage", 0.0, True),
]


def altered(side: Side, entries: list[Any], *, validate_only: bool = False) -> list[Any]:
    answer = side.ask(side.admin, of(49, entries, validate_only), 1)
    return sorted(
        [
            sorted(repr((one.entity_type, one.entity_name)) for one in entry.entity),
            entry.error_code,
            entry.error_message,
        ]
        for entry in answer.entries
    )


def quotas(side: Side, *components: tuple[str, int, str | None], strict: bool = False) -> list[Any]:
    wanted = [part(48, "ComponentData", entity_type=kind, match_type=how, match=text) for kind, how, text in components]
    answer = side.ask(side.admin, of(48, wanted, strict), 1)
    entries = [
        (
            sorted(repr((one.entity_type, one.entity_name)) for one in entry.entity),
            sorted((one.key, one.value) for one in entry.values),
        )
        for entry in answer.entries or ()
    ]
    return [answer.error_code, answer.error_message, answer.entries is None, sorted(entries)]


def entry(entity: list[tuple[str, str | None]], *changes: tuple[str, float, bool]) -> Any:
    names = [part(49, "EntityData", entity_type=kind, entity_name=name) for kind, name in entity]
    ops = [part(49, "OpData", key=key, value=value, remove=remove) for key, value, remove in changes]
    return part(49, "EntryData", entity=names, ops=ops)


def test_quotas(sides: tuple[Side, Side]) -> None:
    theirs, own = sides
    for entity in ENTITIES:
        for change in QUOTAS:
            for validate_only in (True, False):
                wanted = [entry(entity, change)]
                found = [altered(side, wanted, validate_only=validate_only) for side in (own, theirs)]
                assert found[0] == found[1], (entity, change)
    twice = [entry([("user", "z")], QUOTAS[0]), entry([("user", "z")], QUOTAS[2]), entry([("user", "y")], QUOTAS[2])]
    assert altered(own, twice) == altered(theirs, twice)
    time.sleep(0.5)  # until Kafka's broker has what its controller answered
    filters: list[list[tuple[str, int, str | None]]] = [
        [], [("user", 0, "a")], [("user", 1, None)], [("user", 2, None)], [("client-id", 2, None)], [("ip", 2, None)],
        [("user", 0, "a"), ("client-id", 2, None)], [("user", 0, None)], [("user", 1, "a")], [("user", 7, None)],
        [("", 2, None)], [("odd", 2, None)], [("user", 2, None), ("user", 2, None)],
        [("ip", 2, None), ("user", 2, None)],
    ]  # fmt: skip
    for components in filters:
        for strict in (False, True):
            answers = [quotas(side, *components, strict=strict) for side in (own, theirs)]
            assert answers[0] == answers[1], components
    for entity in ENTITIES[:7]:
        for side in sides:
            altered(side, [entry(entity, *((key, 0.0, True) for key in {name for name, *_ in QUOTAS}))])


def creation(owner: str | None, *renewers: tuple[str, str], lifetime_ms: int = -1) -> Any:
    names = [part(38, "CreatableRenewers", principal_type=kind, principal_name=name) for kind, name in renewers]
    return of(38, "User" if owner else owner, owner, names, lifetime_ms)


def without_clock(answer: Any) -> list[Any]:
    """Times after the token's own begin, and of what is made by chance whether it is there."""
    parts = {name: getattr(answer, name) for name in answer.__slots__ if name != "throttle_time_ms"}
    began = parts.get("issue_timestamp_ms", parts.get("issue_timestamp", 0))
    for name, value in parts.items():
        if name in ("token_id", "hmac"):
            parts[name] = len(value)
        elif "timestamp" in name and value > 0:
            parts[name] = round(value - (began or time.time() * 1000), -5)
        elif isinstance(value, list | tuple):
            parts[name] = sorted(map(repr, map(without_clock, value)))
    return sorted(parts.items())


def settle_tokens(side: Side, count: int) -> None:
    deadline = time.monotonic() + SETTLED_S
    while len(side.ask(side.admin, of(41, None), 3).tokens) != count:
        assert time.monotonic() < deadline


OWNERS = (None, [], ["alice"], ["bob"], ["a"], ["nope"])
TOKEN_STEPS = [(39, -1), (39, 0), (39, 600_000), (39, 2**61), (40, 1_200_000), (40, -1)]
"""Renewals and ends, each with its period."""


def token_answers(side: Side) -> list[Any]:
    """What one broker answers; each token is renewed or ended once, as Kafka's broker learns of it later."""
    creations = [
        creation(None),
        creation("", ("User", "admin")),
        creation("alice", ("User", "a"), ("User", "b"), lifetime_ms=5_000_000),
        creation("bob"),
        creation("", ("Group", "g")),
        creation("", lifetime_ms=2**62),
    ]
    side.hold([])
    answers = [side.ask(who, request, 3) for who in (side.alice, side.admin) for request in creations]
    found: list[Any] = list(map(without_clock, answers))
    count = sum(not one.error_code for one in answers)
    settle_tokens(side, count)
    for who in (side.alice, side.admin):
        for owners in OWNERS:
            wanted = None if owners is None else each(41, "DescribeDelegationTokenOwner", owners, "principal_name")
            for one in wanted or ():
                one.principal_type = "User"
            found.append((owners, without_clock(side.ask(who, of(41, wanted), 3))))
    for maker, request in ((side.alice, creations[1]), (side.admin, creations[0]), (side.admin, creations[3])):
        for who in (side.alice, side.admin):
            for step, period in TOKEN_STEPS:
                secret = side.ask(maker, request, 3).hmac
                count += 1
                settle_tokens(side, count)
                answer = side.ask(who, of(step, secret, period), 2)
                count -= step == 40 and period < 0 and not answer.error_code
                found.append((step, period, without_clock(answer)))
    return [*found, *(without_clock(side.ask(side.alice, of(key, b"unknown", 1), 2)) for key in (39, 40))]


def test_tokens(sides: tuple[Side, Side]) -> None:
    theirs, own = sides
    pairs = zip(token_answers(own), token_answers(theirs), strict=True)
    different = [(number, *pair) for number, pair in enumerate(pairs) if pair[0] != pair[1]]
    assert not different, repr(different)
