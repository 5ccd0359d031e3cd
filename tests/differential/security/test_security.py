"""Random ACLs on Apache Kafka 4.4.0 and on our broker: what a client then gets from every API that asks for rights.
SCRAM users and quotas, whose APIs need the same start, are compared as well.
"""

import random
import time
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import pytest
from tests.apache_kafka import require as require_apache_kafka
from tests.broker.test_cluster_apis import part, plain
from tests.differential.pair import FIRST_SEED, seeds
from tests.differential.security import lived_in
from tests.differential.security.every_request import EVERYTHING, GROUPS, TOPICS, battery, each, of, shape
from tests.differential.wire import Connection
from tests.patience import until
from tools.apache_kafka import ApacheKafka

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import Message
from groupkeeper.testing.background import BackgroundBroker

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(900)]

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
ASKERS = {"alice": ("alice", "127.0.0.1"), "alice elsewhere": ("alice", "127.0.0.2"), "bob": ("bob", "127.0.0.1")}
"""Who asks, from where."""
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": MODULE
    + "".join(f' user_{user}="{secret}"' for user, secret in USERS.items())
    + ";",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    "delegation.token.secret.key": "a long secret of the cluster",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    **lived_in.SETTINGS,
}
NAMES = {2: ("ta", "tb", "t", "*", "gone"), 3: ("ga", "gb", "g", "*"), 4: ("kafka-cluster",), 5: ("xa", "x", "*")}


class Side:
    """One broker, as its super user, as alice, as alice from another host, and as bob."""

    def __init__(self, address: str) -> None:
        self.admin = self._login(address, "admin", "127.0.0.1")
        self.askers = {name: self._login(address, user, host) for name, (user, host) in ASKERS.items()}
        self.alice = self.askers["alice"]

    def _login(self, address: str, user: str, host: str) -> Connection:
        connection = Connection(address, host)
        self.ask(connection, m.SaslHandshakeRequest("PLAIN"), 1)
        token = b"\0" + user.encode() + b"\0" + USERS[user].encode()
        assert not self.ask(connection, m.SaslAuthenticateRequest(token), 2).error_code
        return connection

    def ask(self, connection: Connection, request: Any, version: int) -> Any:
        connection.send(request, version)
        answer = connection.receive(30)
        assert answer is not None, request
        return answer

    def prepare(self) -> None:
        topics = [part(19, "CreatableTopic", name=name, num_partitions=1, replication_factor=1) for name in TOPICS]
        self.ask(self.admin, m.CreateTopicsRequest(topics=topics, timeout_ms=20_000), 7)
        asked = each(3, "MetadataRequestTopic", TOPICS)
        until(lambda: not any(one.error_code for one in self.ask(self.admin, of(3, asked), 12).topics))
        found = self.ask(self.admin, of(3, asked), 12).topics
        topic_ids = {one.name: one.topic_id for one in found}
        self.battery = {**battery(topic_ids), **lived_in.more(topic_ids)}
        for key_type, key in ((0, "ga"), (1, "xa")):
            request = m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            until(lambda request=request: not self.ask(self.admin, request, 4).coordinators[0].error_code)  # type: ignore[misc]
        until(lambda: not self.ask(self.admin, *battery()["InitProducerId xa"]).error_code)
        for group in GROUPS:
            until(partial(self._commits, group))
        lived_in.settle(lambda request, version: self.ask(self.admin, request, version))

    def _commits(self, group: str) -> bool:
        topics = self.ask(self.admin, *battery()[f"OffsetCommit {group}"]).topics
        return not topics[-1].partitions[0].error_code

    def hold(self, acls: list[m.AclCreation]) -> list[Any]:
        """Has these ACLs and no others; returns what Kafka said to each."""
        self.ask(self.admin, m.DeleteAclsRequest([m.DeleteAclsFilter(*EVERYTHING)]), 3)
        self._settle(0)
        results = self.ask(self.admin, m.CreateAclsRequest(acls), 3).results
        kept = {repr(plain(acl)) for acl, one in zip(acls, results, strict=True) if not one.error_code}
        self._settle(len(kept))
        return [(one.error_code, one.error_message) for one in results]

    def acls(self, *wanted: Any) -> list[Any]:
        answer = self.ask(self.admin, m.DescribeAclsRequest(*wanted), 3)
        found = [
            (each.resource_type, each.resource_name, each.pattern_type, *(getattr(acl, name) for name in acl.__slots__))
            for each in answer.resources
            for acl in each.acls
        ]
        return [answer.error_code, answer.error_message, sorted(found)]

    def _settle(self, count: int) -> None:
        until(lambda: len(self.acls(*EVERYTHING)[2]) == count)


OPERATIONS = {
    2: (2, 3, 4, 5, 6, 7, 8, 10, 11),
    3: (2, 3, 6, 8, 10, 11),
    4: (2, 5, 7, 8, 9, 10, 11, 12),
    5: (2, 4, 8, 15),
}
"""That Kafka asks for, by what they are about."""


def draw(rng: random.Random) -> m.AclCreation:
    kind = rng.choice((2, 2, 2, 3, 3, 4, 4, 5))
    pattern = 3 if kind == 4 else rng.choice((3, 3, 4))
    return m.AclCreation(
        kind,
        rng.choice(NAMES[kind]),
        pattern,
        rng.choice(("User:alice", "User:alice", "User:*", "User:bob", "Group:alice")),
        rng.choice(("*", "*", "*", "*", "127.0.0.1", "127.0.0.2", "10.0.0.1")),
        rng.choice(OPERATIONS[kind]) if rng.random() < 0.9 else rng.choice((2, *range(3, 13))),
        rng.choice((3, 3, 3, 3, 2)),
    )


def draws(rng: random.Random) -> list[m.AclCreation]:
    """The ACLs of one program: few, or so many that most of what is asked for is allowed to somebody."""
    return [draw(rng) for _ in range(rng.choice((0, 1, 3, 6, 12, 25)))]


ODD = [
    m.AclCreation(kind, name, pattern, principal, "*", operation, permission)
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
    yield from both_with()


@pytest.fixture(scope="module")
def open_sides() -> Iterator[tuple[Side, Side]]:
    """Where what no ACL is about is for everyone."""
    yield from both_with(("allow.everyone.if.no.acl.found", "true"))


def both_with(*more: tuple[str, str]) -> Iterator[tuple[Side, Side]]:
    require_apache_kafka()
    listeners = {"listeners": "SASL://127.0.0.1:0", "listener.security.protocol.map": "SASL:SASL_PLAINTEXT"}
    with (
        ApacheKafka({**SETTINGS, **dict(more)}, listeners={"SASL": "SASL_PLAINTEXT"}) as reference,
        BackgroundBroker(properties={**SETTINGS, **listeners, **dict(more)}) as ours,
    ):
        both = Side(reference.address("SASL")), Side(ours.bootstrap_servers)
        for side in both:
            side.prepare()
        yield both


def test_odd_acls_and_filters(sides: tuple[Side, Side]) -> None:
    theirs, own = sides
    rng = random.Random(FIRST_SEED)
    for odd in ODD:
        request = m.CreateAclsRequest([draw(rng), odd])
        answers = [side.ask(side.admin, request, 3).results for side in sides]
        assert list(map(told, answers[1])) == list(map(told, answers[0])), plain(odd)
    acls = [draw(rng) for _ in range(30)]
    assert own.hold(acls) == theirs.hold(acls)
    for wanted in FILTERS:
        assert own.acls(*wanted) == theirs.acls(*wanted), wanted
    deletion = m.DeleteAclsRequest([m.DeleteAclsFilter(*wanted) for wanted in FILTERS[:6]])
    assert deleted(own, deletion) == deleted(theirs, deletion)


def deleted(side: Side, deletion: m.DeleteAclsRequest) -> Any:
    results = side.ask(side.admin, deletion, 3).filter_results
    return [(one.error_code, one.error_message, sorted(map(told, one.matching_acls))) for one in results]


def told(message: Message) -> list[str]:
    return [repr(getattr(message, name)) for name in message.__slots__]


@pytest.mark.parametrize("seed", seeds(60))
def test_same_answers(sides: tuple[Side, Side], seed: int) -> None:
    compare(sides, seed)


@pytest.mark.parametrize("seed", seeds(60))
def test_same_answers_where_everyone_may(open_sides: tuple[Side, Side], seed: int) -> None:
    compare(open_sides, seed)


def compare(sides: tuple[Side, Side], seed: int) -> None:
    theirs, own = sides
    rng = random.Random(seed)
    acls = draws(rng)
    assert own.hold(acls) == theirs.hold(acls)
    different = {}
    for who, name in product(ASKERS, own.battery):
        answers = [shape(side.ask(side.askers[who], *side.battery[name])) for side in (own, theirs)]
        if answers[0] != answers[1]:
            different[who, name] = answers
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
        (m.AlterUserScramCredentialsRequest(deletions, upsertions), 0),
        (m.DescribeUserScramCredentialsRequest([part(50, "UserName", name=name) for name in names]), 0),
        (m.DescribeUserScramCredentialsRequest(None), 0),
        (m.AlterUserScramCredentialsRequest([part(51, "ScramCredentialDeletion", name="fresh", mechanism=1)], []), 0),
        (m.DescribeUserScramCredentialsRequest([]), 0),
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


def mutation(key: int, version: int, *topics: tuple[str, int]) -> tuple[Any, int]:
    if key == 19:
        wanted = [part(19, "CreatableTopic", name=name, num_partitions=n, replication_factor=1) for name, n in topics]
    elif key == 37:
        wanted = [part(37, "CreatePartitionsTopic", name=name, count=n, assignments=None) for name, n in topics]
    elif version < 6:
        return of(20, [], [name for name, _ in topics], 20_000), version
    else:
        wanted = [part(20, "DeleteTopicState", name=name) for name, _ in topics]
        return of(20, wanted, [], 20_000), version
    return of(key, wanted, 20_000, False), version


def test_automatic_topics_count_as_mutations(sides: tuple[Side, Side]) -> None:
    name, names = "controller_mutation_rate", ["auto-1", "auto-2", "auto-3"]
    found = []
    for side in sides:
        altered(side, [entry([("user", "admin")], (name, 0.1, False))])
        time.sleep(0.5)
        said = []
        for topic in names:
            answer = side.ask(side.admin, of(3, each(3, "MetadataRequestTopic", [topic])), 12)
            said.append((answer.topics[0].error_code, answer.throttle_time_ms))
            time.sleep(0.5)
        request, version = mutation(19, 7, ("auto-4", 1))
        said.append((side.ask(side.admin, request, version).topics[0].error_code, 0))
        altered(side, [entry([("user", "admin")], (name, 0.0, True))])
        known = {topic.name for topic in side.ask(side.admin, of(3, None), 12).topics}
        found.append((said, known.intersection(names)))
    assert found[0] == found[1]
    assert found[0][1] == {"auto-1", "auto-2"}


def test_the_quota_of_mutations(sides: tuple[Side, Side]) -> None:
    name = "controller_mutation_rate"
    steps = [
        mutation(19, 7, ("qa", 7)), mutation(19, 7, ("qb", 3), ("qc", 3), ("qd", 1)), mutation(19, 6, ("qd", 1)),
        mutation(19, 5, ("qd", 1), ("qa", 1)), mutation(20, 6, ("qb", 0), ("gone", 0)), mutation(37, 3, ("qa", 8)),
        mutation(37, 2, ("qa", 8)), mutation(20, 4, ("qb", 0)), mutation(20, 6, ("qa", 0)),
        mutation(20, 6, ("qc", 0)), mutation(20, 3, ("qd", 0)), mutation(20, 3, ("qc", 0)),
    ]  # fmt: skip
    found = []
    for side in sides:
        altered(side, [entry([("user", "admin")], (name, 2.0, False))])
        time.sleep(0.5)
        said = []
        for request, version in steps * 2:
            answer = side.ask(side.admin, request, version)
            results = getattr(answer, "topics", None) or getattr(answer, "responses", None) or answer.results
            codes = sorted((one.name, one.error_code, one.error_message) for one in results)
            said.append((codes, answer.throttle_time_ms))
            time.sleep(0.05)  # Kafka's broker has it a moment after its controller
        altered(side, [entry([("user", "admin")], (name, 0.0, True))])
        found.append(said)
    for step, ((ours, our_ms), (expected, expected_ms)) in enumerate(zip(found[1], found[0], strict=True)):
        assert ours == expected, step
        assert abs(our_ms - expected_ms) < 1500, step
    assert any(code == 89 for codes, _ in found[0] for _, code, _ in codes)
    assert any(throttled for _, throttled in found[0])


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
    until(lambda: len(side.ask(side.admin, of(41, None), 3).tokens) == count)


OWNERS: tuple[list[str] | None, ...] = (None, [], ["alice"], ["bob"], ["a"], ["nope"])
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
