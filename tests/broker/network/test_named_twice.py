"""Requests that name topics and partitions several times, or some that are unknown: order and number of the answers, as
Apache Kafka 4.3.1 gives them.
"""

import pytest
from tests.broker.conftest import Wire

from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import ZERO_UUID

NOWHERE = b"\x07" * 16
UNKNOWN = errors.UnknownTopicOrPartition.code


@pytest.mark.parametrize("asked", [[[0], [1, 0]], [[0, 1, 0]]])
async def test_a_topic_of_list_offsets_is_answered_once(wire: Wire, asked: list[list[int]]) -> None:
    await wire.create("t", 2)
    topics = [m.ListOffsetsTopic("t", [m.ListOffsetsPartition(index, -1, -1) for index in each]) for each in asked]
    answer = await wire.call(m.ListOffsetsRequest(-1, 0, topics), 7)
    (topic,) = answer.topics
    found = [(part.partition_index, part.error_code) for part in topic.partitions]
    assert found == [(0, errors.InvalidRequest.code), (1, 0)]


async def metadata(wire: Wire, *topics: m.MetadataRequestTopic, operations: bool = False) -> m.MetadataResponse:
    request = m.MetadataRequest(list(topics), False, include_topic_authorized_operations=operations)
    return await wire.call(request, 12)


async def test_topics_that_are_there_come_first(wire: Wire) -> None:
    await wire.create("t")
    answer = await metadata(wire, *(m.MetadataRequestTopic(name=name) for name in ("nope", "t", "a b", "nope")))
    found = [(topic.name, topic.error_code) for topic in answer.topics]
    assert found == [("t", 0), ("nope", UNKNOWN), ("a b", errors.InvalidTopicException.code)]


async def test_names_do_not_count_beside_ids(wire: Wire) -> None:
    topic_id = await wire.create("t")
    wanted = [(topic_id, None), (ZERO_UUID, "nope"), (topic_id, "t"), (NOWHERE, "other")]
    answer = await metadata(wire, *(m.MetadataRequestTopic(*each) for each in wanted))
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [(None, errors.UnknownTopicId.code), ("t", 0)]


async def test_an_unknown_topic_has_authorized_operations(wire: Wire) -> None:
    await wire.create("t")
    answer = await metadata(wire, *(m.MetadataRequestTopic(name=name) for name in ("t", "nope")), operations=True)
    there, unknown = answer.topics
    assert there.topic_authorized_operations == unknown.topic_authorized_operations > 0
