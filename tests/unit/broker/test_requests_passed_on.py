"""A request of which a topic or a group is refused reaches the coordinator as it came, but for what is refused. So does
the coordinator's answer reach the client.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tests.broker.held import topic_of
from tests.unit.broker.peer import Denies, Peer

from groupkeeper.broker.api_table import TABLE
from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.coordination.group_host import GroupHost
from groupkeeper.coordinator import views
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.codec import decode, encode
from groupkeeper.protocol.messages.streams_group_heartbeat_request import Subtopology, Topology
from groupkeeper.protocol.primitives import Message, RootMessage, UnsupportedField

NAMES = ("t", "u")
"""Topics of the requests, of one partition; u is refused."""
ABSENT = 99
"""A partition that is refused, too: in a topic of which another one is accepted."""
WHOLE_OR_NOT = pytest.mark.parametrize("partitions", [[0], [0, ABSENT]], ids=["all", "one of two"])
_GROUP = ResourceType.GROUP
GIVEN = {"partition_index", "producer_id", "producer_epoch"}
"""Fields whose 0 is not the default, but the value that the test gives."""
OUTCOME = {"error_code", "error_message"}
"""Fields of an answer by which it is another one."""


class Passed(NamedTuple):
    """Requests that have reached coordinators, and their answers, whose fields all have values."""

    requests: list[Any]
    answers: list[Any]

    def filled(self, answer: Any, version: int) -> Any:
        fill(answer, version)
        self.answers.append(decode(type(answer), encode(answer, version), version))
        return answer


@pytest.fixture
def passed_on(monkeypatch: pytest.MonkeyPatch) -> Passed:
    passed = Passed([], [])

    class Heard(GroupHost):
        def reply(self, group_id: str, request: Message, call: Call) -> Message:
            passed.requests.append(request)
            return passed.filled(super().reply(group_id, request, call), call.api_version)

        async def ask(self, group_id: str, request: Message, call: Call) -> Message:
            passed.requests.append(request)
            return passed.filled(await super().ask(group_id, request, call), call.api_version)

    monkeypatch.setattr("groupkeeper.broker.broker.GroupHost", Heard)
    return passed


def newest(request: type[RootMessage]) -> int:
    return TABLE[request.API_KEY].highest


def structs(message: Message) -> Iterator[Message]:
    """The message, and those in its arrays."""
    yield message
    for value in (getattr(message, name) for name in message.__slots__):
        for one in value if isinstance(value, list) else ():
            if isinstance(one, Message):
                yield from structs(one)


def fill(request: RootMessage, version: int) -> None:
    """Gives each field that the version has, in all structs, a value of its own, unless it has one."""
    for struct in structs(request):
        for number, name in enumerate(struct.__slots__, start=7):
            default = getattr(type(struct)(), name)
            if getattr(struct, name) == default and name not in GIVEN | OUTCOME:
                setattr(struct, name, other(default, number))
                try:
                    encode(request, version)
                except UnsupportedField:
                    setattr(struct, name, default)


def other(default: object, number: int) -> object:
    match default:
        case bool():
            return not default
        case int():
            return number
        case str() | None:
            return f"value {number}"
    return default


def arriving(request: Any, version: int, broker: Broker) -> Any:
    """What a coordinator gets of it: all that the version carries of the first topic, which has its name and its id."""
    found: Any = decode(type(request), encode(request, version), version)
    whole: Any = found.groups[0] if isinstance(found, m.OffsetFetchRequest) else found
    topic: Any
    (topic, _) = whole.topics
    topic.name = "t"
    if type(topic) in (m.OffsetCommitRequestTopic, m.TxnOffsetCommitRequestTopic):
        topic.topic_id = id_of(broker, "t")
        topic.partitions = [one for one in topic.partitions if one.partition_index != ABSENT]
    whole.topics = [topic]
    return found


def lost(found: object, expected: object, place: str) -> Iterator[str]:
    """The fields in which a request differs from what a coordinator should get."""
    match found, expected:
        case Message(), Message() if type(found) is type(expected):
            for name in found.__slots__:
                yield from lost(getattr(found, name), getattr(expected, name), f"{place}.{name}")
        case list(), list() if len(found) == len(expected):
            for number, pair in enumerate(zip(found, expected, strict=True)):
                yield from lost(*pair, f"{place}[{number}]")
        case _ if found != expected:
            yield f"{place} is {found!r}, and was {expected!r}"


def check(passed_on: Passed, expected: Message, answer: Message) -> None:
    name = type(expected).__name__
    assert list(lost(passed_on.requests, [expected], name)) == [], (
        f"fields of {name} are lost in broker/apis: pass on its structs, or whole copies, not new ones of some fields"
    )
    check_answer(passed_on, answer)


async def pass_on(passed_on: Passed, peer: Peer, sent: RootMessage, version: int) -> None:
    """A request with all fields that the version carries arrives as it was sent."""
    fill(sent, version)
    answer = await peer.ask(sent, version)
    check(passed_on, arriving(sent, version, peer.broker), answer)


def check_answer(passed_on: Passed, answer: Message) -> None:
    told = [one for each in passed_on.answers for one in structs(each)]
    found = [*structs(answer)]
    assert any(isinstance(value, int) and value > 6 for one in told for value in fields_of(one).values())
    assert [one for one in told if not any(fields_of(one) == fields_of(each) for each in found)] == [], (
        f"fields of {type(answer).__name__} are lost in broker/apis: answer with the structs that the coordinator gave"
    )


def fields_of(struct: Message) -> dict[str, Any]:
    """Those that are no arrays."""
    values = {name: getattr(struct, name) for name in struct.__slots__}
    return {"": type(struct), **{name: value for name, value in values.items() if not isinstance(value, list)}}


@WHOLE_OR_NOT
@pytest.mark.parametrize("version", [2, 9, newest(m.OffsetCommitRequest)])
async def test_a_commit(passed_on: Passed, version: int, partitions: list[int]) -> None:
    async with Broker() as broker:
        peer = _peer(broker)
        topics = [
            m.OffsetCommitRequestTopic(*place, [m.OffsetCommitRequestPartition(one, 5) for one in partitions])
            for place in places(broker, is_by_id=version >= 10)
        ]
        sent = m.OffsetCommitRequest("g", topics=topics)
        await pass_on(passed_on, peer, sent, version)


@WHOLE_OR_NOT
@pytest.mark.parametrize("version", [5, newest(m.TxnOffsetCommitRequest)])
async def test_a_commit_in_a_transaction(passed_on: Passed, version: int, partitions: list[int]) -> None:
    async with Broker() as broker:
        peer = _peer(broker)
        producer = await peer.ask(m.InitProducerIdRequest("x", 60_000), 5)
        topics = [
            m.TxnOffsetCommitRequestTopic(*place, [m.TxnOffsetCommitRequestPartition(one, 5) for one in partitions])
            for place in places(broker, is_by_id=version >= 6)
        ]
        sent = m.TxnOffsetCommitRequest("x", "g", producer.producer_id, producer.producer_epoch, topics=topics)
        await pass_on(passed_on, peer, sent, version)


@pytest.mark.parametrize("version", [9, newest(m.OffsetFetchRequest)])
async def test_a_fetch(passed_on: Passed, version: int) -> None:
    async with Broker() as broker:
        peer = _peer(broker)
        topics = [m.OffsetFetchRequestTopics(*place, [0]) for place in places(broker, is_by_id=version >= 10)]
        sent = m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup("g", topics=topics)])
        await pass_on(passed_on, peer, sent, version)


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        (m.DescribeGroupsRequest, "groups"),
        (m.DeleteGroupsRequest, "groups_names"),
        (m.ConsumerGroupDescribeRequest, "group_ids"),
        (m.ShareGroupDescribeRequest, "group_ids"),
        (m.StreamsGroupDescribeRequest, "group_ids"),
    ],
)
async def test_a_request_about_groups(passed_on: Passed, kind: type[RootMessage], array: str) -> None:
    async with Broker() as broker:
        peer = _peer(broker)
        sent = kind(**{array: ["g", "u"]})
        fill(sent, newest(kind))
        answer = await peer.ask(sent, newest(kind))
        setattr(sent, array, ["g"])
        check(passed_on, sent, answer)


async def test_a_list_of_groups(passed_on: Passed, monkeypatch: pytest.MonkeyPatch) -> None:
    list_groups = views.list_groups

    def heard(*given: Any) -> Any:
        result = list_groups(*given)
        passed_on.filled(result.response, newest(m.ListGroupsRequest))
        return result

    monkeypatch.setattr(views, "list_groups", heard)
    async with Broker() as broker:
        peer = _peer(broker)
        await peer.commit({("t", 0): 5}, group_id="g")
        passed_on.answers.clear()
        check_answer(passed_on, await peer.ask(m.ListGroupsRequest(), newest(m.ListGroupsRequest)))


async def test_a_coordinator_that_is_asked_for_one_group_answers_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ask_each` gets the answer about one group by `GroupHost.reply`, about several by `ask`."""
    directly: list[Message] = []

    class Heard(GroupHost):
        def reply(self, group_id: str, request: Message, call: Call) -> Message:
            directly.append(request)
            return super().reply(group_id, request, call)

    monkeypatch.setattr("groupkeeper.broker.broker.GroupHost", Heard)
    async with Broker(properties={"group.initial.rebalance.delay.ms": 0}) as broker:
        peer = _peer(broker)
        groups = broker.groups
        await peer.stable_member("classic")
        await peer.commit({("t", 0): 5}, group_id="idle")
        await peer.ask(m.ConsumerGroupHeartbeatRequest("consumer", "c", 0, None, None, 9000, ["t"], None, None, []), 1)
        await peer.ask(m.ShareGroupHeartbeatRequest("share", "s", 0, None, ["t"]), 1)
        streams = m.StreamsGroupHeartbeatRequest("streams", "s", 0, rebalance_timeout_ms=1000, process_id="p")
        streams.topology = Topology(0, [Subtopology("0", ["t"])])
        streams.active_tasks, streams.standby_tasks, streams.warmup_tasks = [], [], []
        await peer.ask(streams, 0)
        topics = [m.OffsetFetchRequestTopics("t", bytes(16), [0, 1])]

        async def compare(group: str) -> None:
            requests: list[RootMessage] = [
                *(m.OffsetFetchRequest("", [], [m.OffsetFetchRequestGroup(group, topics=some)], is_stable)
                  for some in (None, topics) for is_stable in (False, True)),
                m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(group, "stranger", 3)]),
                m.DescribeGroupsRequest([group]),
                m.ConsumerGroupDescribeRequest([group]),
                m.ShareGroupDescribeRequest([group]),
                m.StreamsGroupDescribeRequest([group]),
            ]  # fmt: skip
            for request in requests:
                version = 9 if isinstance(request, m.OffsetFetchRequest) else newest(type(request))
                call = Call(request.API_KEY, version, 1, "c", request)
                answers: tuple[Any, ...] = groups.reply(group, request, call), await groups.ask(group, request, call)
                assert len({encode(one, version) for one in answers}) == 1, request
                directly.clear()
                await peer.ask(request, version)
                assert len(directly) == 1, request

        for group in ("classic", "idle", "consumer", "share", "streams", "nobody"):
            assert (group in groups.shard_of(group).coordinator.state.groups) == (group != "nobody")
            await compare(group)
        groups.resign(groups.partition_of("idle"))
        await compare("idle")
        groups.unload()
        await compare("idle")


def id_of(broker: Broker, name: str) -> bytes:
    return topic_of(broker, name).topic_id


def places(broker: Broker, *, is_by_id: bool) -> list[tuple[str, bytes]]:
    return [("", id_of(broker, name)) if is_by_id else (name, bytes(16)) for name in NAMES]


def _peer(broker: Broker) -> Peer:
    for name in NAMES:
        broker.topics.create(name, 1, {})
    broker.groups.ensure_topic()
    broker.transactions.ensure_topic()
    operations = (Operation.READ, Operation.DESCRIBE, Operation.DELETE)
    broker.authorizer = Denies(*((one, kind, "u") for one in operations for kind in (ResourceType.TOPIC, _GROUP)))
    return Peer(broker)
