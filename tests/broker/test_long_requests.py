"""A long request does not make other clients wait, and none has far more objects than bytes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import nullcontext, suppress
from copy import copy
from importlib import import_module
from typing import Any

import pytest
from tests.unit.broker.peer import UNKNOWN_ID, Peer
from tools.protocol.generate import SCHEMAS as SCHEMA_FILE
from tools.protocol.schema import Message, Struct, load

from groupkeeper.broker.api_table import TABLE
from groupkeeper.broker.apis import list_groups, logs, offset_fetch
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.network.closing import CloseConnection
from groupkeeper.broker.network.long_requests import _ARRAYS, in_parts
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import InvalidRequest, PolicyViolation, UnknownTopicOrPartition
from groupkeeper.protocol.framing import decode_response, encode_request, encode_response, request_class, response_class
from groupkeeper.protocol.messages.alter_client_quotas_request import EntityData, EntryData
from groupkeeper.protocol.messages.alter_configs_request import AlterConfigsResource
from groupkeeper.protocol.messages.describe_producers_request import TopicRequest as DescribeProducersTopic
from groupkeeper.protocol.messages.describe_topic_partitions_request import TopicRequest
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.messages.incremental_alter_configs_request import AlterConfigsResource as IncrementalResource
from groupkeeper.protocol.messages.share_fetch_request import FetchPartition as ShareFetchPartition
from groupkeeper.protocol.messages.share_fetch_request import FetchTopic as ShareFetchTopic
from groupkeeper.protocol.messages.share_fetch_request import ForgottenTopic
from groupkeeper.protocol.primitives import RootMessage

PARTITIONS = 1200
MANY = range(PARTITIONS)
SCHEMAS = {one.name: one for one in load(SCHEMA_FILE.read_text())}


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with Broker() as broker:
        broker.topics.create("wide", PARTITIONS, {})
        broker.groups.ensure_topic()
        yield Peer(broker)


def whole_commit(partitions: Sequence[int] = MANY) -> m.OffsetCommitRequest:
    parts = [m.OffsetCommitRequestPartition(index, index + 1, -1, "metadata" * 4) for index in partitions]
    return m.OffsetCommitRequest("g", topics=[m.OffsetCommitRequestTopic("wide", partitions=parts)])


def whole_fetch(partitions: Sequence[int] = MANY) -> m.OffsetFetchRequest:
    topics = [m.OffsetFetchRequestTopics("wide", partition_indexes=list(partitions))]
    return m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup(name, topics=topics) for name in ("g", "other")])


LONG_REQUESTS = [
    (whole_commit(), 9),
    (whole_fetch(), 9),
    (m.ListOffsetsRequest(-1, 0, [m.ListOffsetsTopic("wide", [m.ListOffsetsPartition(i, -1, -1) for i in MANY])]), 10),
    (m.DeleteRecordsRequest([m.DeleteRecordsTopic("wide", [m.DeleteRecordsPartition(i, i % 2) for i in MANY])]), 2),
    (m.FindCoordinatorRequest(coordinator_keys=[f"g{i}" for i in MANY]), 5),
    (m.DescribeGroupsRequest([f"g{i}" for i in MANY]), 5),
    (m.DescribeConfigsRequest([m.DescribeConfigsResource(2, f"none{i}") for i in MANY]), 4),
]


@pytest.mark.parametrize(("request_", "version"), LONG_REQUESTS, ids=lambda one: type(one).__name__)
async def test_the_parts_of_a_request_have_the_answer_of_the_whole(
    peer: Peer, request_: RootMessage, version: int
) -> None:
    api = TABLE[request_.API_KEY]
    api.load()
    call = Call(api.key, version, 1, "c", request_)
    parts = []

    async def carry_out(part: Call) -> RootMessage | None:
        parts.append(part)
        return await api.handle(peer.broker, part, part.message)

    in_turns = await in_parts(call, carry_out)
    assert len(parts) > 1
    assert in_turns == await api.handle(peer.broker, call, call.message)


@pytest.mark.parametrize("key", _ARRAYS)
def test_the_arrays_exist_in_requests_and_answers(key: int) -> None:
    for pair in _ARRAYS[key].split(", "):
        for path, cls in zip(pair.split(" > "), (request_class(key), response_class(key)), strict=True):
            schema = SCHEMAS[cls.__name__]
            struct: Any = schema.root
            for name in path.split("."):
                (item,) = [one for one in struct.fields if one.name == name]
                assert item.is_array
                struct = schema.structs.get(item.struct_name or "")


async def test_every_such_request_is_answered_in_parts(peer: Peer) -> None:
    async def carry_out(part: Call) -> RootMessage | None:
        return await TABLE[part.api_key].handle(peer.broker, part, part.message)

    for key, pairs in _ARRAYS.items():
        api = TABLE[key]
        api.load()
        schema = SCHEMAS[api.request.__name__]
        for pair in pairs.split(", "):
            message = of_defaults(schema, schema.root, pair.partition(" > ")[0].split("."))
            call = Call(api.key, api.highest, 1, "c", message)
            # ACLs and settings without a type are refused as a whole.
            with suppress(CloseConnection, InvalidRequest) if key in (30, 31, 32) else nullcontext():
                assert await in_parts(call, carry_out) is not None


def of_defaults(schema: Message, struct: Struct, path: list[str]) -> Any:
    """A struct with more elements at the path than a part has; all other fields have their defaults."""
    module = import_module(request_class(schema.key or 0).__module__)
    value = getattr(module, struct.name)()
    (item,) = [one for one in struct.fields if one.name == path[0]]
    inner = schema.structs.get(item.struct_name or "")
    if len(path) > 1:
        assert inner is not None
        setattr(value, item.name, [of_defaults(schema, inner, path[1:])])
    else:
        one = getattr(module, inner.name)() if inner is not None else "" if item.element == "string" else 0
        setattr(value, item.name, [copy(one) for _ in range(1001)])
    return value


async def test_others_have_their_turn_while_a_long_request_is_served(peer: Peer) -> None:
    other = Peer(peer.broker)
    long = asyncio.create_task(peer.ask(whole_commit(list(MANY) * 40), 9))
    answered = 0
    while not long.done():
        await other.ask(m.ApiVersionsRequest(), 2)
        await asyncio.sleep(0)
        answered += 1
    assert answered > 40
    (topic,) = long.result().topics
    assert [one.partition_index for one in topic.partitions] == list(MANY) * 40
    assert not any(one.error_code for one in topic.partitions)


async def test_all_topics_are_described_in_turns(peer: Peer) -> None:
    for number in range(1100):
        peer.broker.topics.create(f"t{number}", 1, {})
    turns, answer = await turns_of(peer.ask(m.MetadataRequest(None), 9))
    assert turns > 2
    assert len([one for one in answer.topics if not one.is_internal]) == 1101


@pytest.mark.parametrize(
    ("asked", "handle"),
    [
        (m.ListGroupsRequest(), list_groups.handle),
        (m.DescribeLogDirsRequest(None), logs.handle_dirs),
        (m.DescribeLogDirsRequest([m.DescribableLogDirTopic("most", list(range(3000)))]), logs.handle_dirs),
    ],
    ids=["groups", "topics", "one topic"],
)
async def test_what_lists_much_does_it_in_turns(
    asked: RootMessage, handle: Callable[[Broker, Call, Any], Coroutine[Any, Any, RootMessage]]
) -> None:
    async with Broker(properties={"offsets.topic.num.partitions": "3"}) as broker:
        for name, partitions in (("many", 1100), ("more", 1100), ("most", 3000)):
            broker.topics.create(name, partitions, {})
        broker.groups.ensure_topic()
        for number in range(400):
            await Peer(broker).commit({("many", 0): 1}, group_id=f"g-{number}")
        turns, _ = await turns_of(handle(broker, Call(asked.API_KEY, 4, 1, "c", asked), asked))
        assert turns > 2


def wide_fetch() -> tuple[RootMessage, int]:
    return m.FetchRequest(max_wait_ms=0, topics=[FetchTopic("wide", partitions=[FetchPartition(i) for i in MANY])]), 12


def wide_transaction() -> tuple[RootMessage, int]:
    topics = [m.AddPartitionsToTxnTopic(f"none{i}", [0]) for i in MANY]
    return m.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx", v3_and_below_producer_id=1, v3_and_below_topics=topics
    ), 3


def wide_share_fetch() -> tuple[RootMessage, int]:
    topics = [ShareFetchTopic(UNKNOWN_ID, [ShareFetchPartition(i) for i in MANY])]
    return m.ShareFetchRequest("g", "m", max_wait_ms=0, max_bytes=1, max_records=1, topics=topics), 2


def wide_forgetting() -> tuple[RootMessage, int]:
    forgotten = [ForgottenTopic(UNKNOWN_ID, list(MANY))]
    return m.ShareFetchRequest("g", "m", max_wait_ms=0, max_bytes=1, max_records=1, forgotten_topics_data=forgotten), 2


NAMES = [f"none{i}" for i in MANY]
IN_TURNS = [
    wide_fetch(),
    wide_share_fetch(),
    wide_forgetting(),
    wide_transaction(),
    (m.MetadataRequest([m.MetadataRequestTopic(name=name) for name in NAMES], allow_auto_topic_creation=False), 9),
    (m.MetadataRequest([m.MetadataRequestTopic(i.to_bytes(16), None) for i in range(1, PARTITIONS)]), 13),
    (m.ListGroupsRequest(NAMES), 5),
    (m.ListGroupsRequest(types_filter=NAMES), 5),
    (m.ListTransactionsRequest(NAMES), 2),
    (m.DescribeTopicPartitionsRequest([TopicRequest(name) for name in NAMES]), 0),
    (m.DescribeUserScramCredentialsRequest([m.UserName(name) for name in NAMES]), 0),
    (m.AlterUserScramCredentialsRequest([m.ScramCredentialDeletion(name, 1) for name in NAMES]), 0),
    (m.AlterClientQuotasRequest([EntryData([EntityData("ip", name)]) for name in NAMES]), 1),
    (m.AlterShareGroupOffsetsRequest("g", [m.AlterShareGroupOffsetsRequestTopic(name) for name in NAMES]), 0),
    (m.ConsumerGroupHeartbeatRequest("g", "m", subscribed_topic_names=NAMES), 1),
    (m.ShareGroupHeartbeatRequest("g", "m", subscribed_topic_names=NAMES), 1),
]


@pytest.mark.parametrize(("asked", "version"), IN_TURNS)
async def test_what_cannot_be_done_in_parts_is_done_in_turns(peer: Peer, asked: RootMessage, version: int) -> None:
    api = TABLE[asked.API_KEY]
    api.load()
    turns, _ = await turns_of(api.handle(peer.broker, Call(api.key, version, 1, "c", asked), asked))
    assert turns > 2


async def test_a_share_session_of_many_partitions_ends_in_turns(peer: Peer) -> None:
    sessions = peer.broker.share_sessions
    session = sessions.begin("g", "m", 1)
    for index in MANY:
        session.add((UNKNOWN_ID, index), None)
    assert (await turns_of(sessions.end(session)))[0] > 2


async def test_a_few_kilobytes_of_numbers_are_a_long_request(peer: Peer) -> None:
    topics = [DescribeProducersTopic("wide", list(range(5_000)))]
    turns, answer = await turns_of(peer.ask(m.DescribeProducersRequest(topics), 0))
    assert turns > 5
    (topic,) = answer.topics
    assert [one.partition_index for one in topic.partitions] == list(range(5_000))


async def test_topics_are_created_for_a_request_only_as_many_as_one_may_create(peer: Peer) -> None:
    names = [f"none{number}" for number in range(5_001)]  # as Apache Kafka 4.4.0, which creates 5,000
    topics = [m.MetadataRequestTopic(name=name) for name in names]
    answer = await peer.ask(m.MetadataRequest(topics), 9)
    assert {one.error_code for one in answer.topics} == {UnknownTopicOrPartition.code}
    assert not set(names) & set(peer.broker.topics.names())
    await peer.ask(m.MetadataRequest(topics[:3]), 9)
    assert set(names[:3]) < set(peer.broker.topics.names())


async def test_the_refusal_of_a_long_request_is_written_beside_others(peer: Peer) -> None:
    asked = m.CreateTopicsRequest([m.CreatableTopic(f"t{number}", 1, 1) for number in range(20_000)])
    turns, frame = await turns_of(peer.exchange(encode_request(7, "c", asked, 7)[4:]))
    assert turns > 100
    answer = decode_response(m.CreateTopicsResponse, frame[4:], 7)[1]
    assert {one.error_code for one in answer.topics} == {PolicyViolation.code}


async def test_what_fits_into_a_part_is_passed_on_as_it_came(peer: Peer) -> None:
    topics = [m.OffsetFetchRequestTopics(f"t{number}", partition_indexes=[0, 1]) for number in range(600)]
    parts: list[m.OffsetFetchRequestTopics] = []

    async def carry_out(part: Call) -> RootMessage | None:
        assert isinstance(part.message, m.OffsetFetchRequest)
        parts.extend(topic for group in part.message.groups for topic in group.topics or ())
        answer = offset_fetch.reply(peer.broker, part, part.message)
        assert isinstance(answer, RootMessage)
        return answer

    asked = m.OffsetFetchRequest(groups=[m.OffsetFetchRequestGroup("g", topics=topics)])
    await in_parts(Call(9, 9, 1, "c", asked), carry_out)
    assert [id(one) for one in parts] == [id(one) for one in topics]


async def turns_of(work: Awaitable[Any]) -> tuple[int, Any]:
    """How often others could do something while it was done, and its result."""
    task = asyncio.ensure_future(work)
    turns = 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    return turns, task.result()


@pytest.mark.parametrize("version", [2, 7, 9, 10])
async def test_all_offsets_of_a_group_are_read_in_turns(
    peer: Peer, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offset_fetch, "_LONG", 1000)
    peer.broker.topics.create("other", PARTITIONS, {})
    for topic in ("wide", "other"):
        await peer.commit({(topic, index): index for index in MANY}, group_id="g")
    if version < 8:
        asked = m.OffsetFetchRequest(group_id="g", topics=None)
    else:
        groups = [m.OffsetFetchRequestGroup(name, topics=None) for name in ("g", "none")]
        asked = m.OffsetFetchRequest(groups=groups)
    turns, frame = await turns_of(peer.exchange(encode_request(7, "c", asked, version)[4:]))
    assert turns > 4
    whole = offset_fetch.reply(peer.broker, Call(9, version, 1, "c", asked), asked)
    assert isinstance(whole, RootMessage)
    assert frame == encode_response(7, whole, version)


@pytest.mark.parametrize("resource", [AlterConfigsResource(2, "wide"), IncrementalResource(2, "wide")])
async def test_resources_that_appear_twice_are_refused_in_turns(
    peer: Peer, resource: AlterConfigsResource | IncrementalResource
) -> None:
    asked: Any = (
        m.AlterConfigsRequest if isinstance(resource, AlterConfigsResource) else m.IncrementalAlterConfigsRequest
    )
    resources = [resource] * 2000 + [type(resource)(2, "none"), type(resource)(32, "g")]
    turns, frame = await turns_of(peer.exchange(encode_request(7, "c", asked(resources), 1)[4:]))
    assert turns > 4
    _, answer = decode_response(response_class(asked.API_KEY), frame[4:], 1)
    *twice, unknown, right = [(one.error_code, one.error_message) for one in answer.responses]  # type: ignore[attr-defined]
    assert set(twice) == {(InvalidRequest.code, "Each resource must appear at most once.")}
    assert (unknown[0], right[0]) == (UnknownTopicOrPartition.code, 0)


async def test_as_many_partitions_as_a_client_may_name(peer: Peer) -> None:
    response = await peer.ask(whole_fetch(range(200_000)), 9)
    for group in response.groups:
        (topic,) = group.topics
        assert [one.partition_index for one in topic.partitions] == list(range(200_000))


def tiny_names() -> RootMessage:
    """Many short arrays in one that is not too long."""
    return m.DescribeConfigsRequest([m.DescribeConfigsResource(2, "", [""] * 6) for _ in range(60_000)])


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (m.FindCoordinatorRequest(coordinator_keys=[""] * 200_000), 5),
        (m.DescribeGroupsRequest([""] * 200_000), 5),
        (m.DescribeGroupsRequest([""] * 200_000), 4),
        (tiny_names(), 4),
        (m.DescribeConfigsRequest([m.DescribeConfigsResource(2)] * 100_000), 4),
        (
            m.ProduceRequest(None, -1, 1000, [m.TopicProduceData("t", bytes(16), [m.PartitionProduceData()] * 12_000)]),
            9,
        ),
    ],
    ids=["strings", "strings of answers with structs", "version that is not flexible", "nested", "structs", "produce"],
)
async def test_a_request_with_more_elements_than_its_bytes_can_hold_closes_the_connection(
    peer: Peer, request_: RootMessage, version: int
) -> None:
    frame = encode_request(7, "c", request_, version)
    with pytest.raises(CloseConnection, match="more elements than a request of"):
        await peer.exchange(frame[4:])
