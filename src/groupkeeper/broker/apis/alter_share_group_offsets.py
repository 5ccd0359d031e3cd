"""AlterShareGroupOffsets (91): sets the start offsets of an empty share group (KIP-932)."""

from __future__ import annotations

from groupkeeper.broker.apis._share_groups import ask_without_hidden
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import TopicAuthorizationFailed
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    return await ask_without_hidden(broker, call, Operation.READ, _hidden)


def _hidden(topic: m.AlterShareGroupOffsetsRequestTopic) -> m.AlterShareGroupOffsetsResponseTopic:
    error = TopicAuthorizationFailed()
    return m.AlterShareGroupOffsetsResponseTopic(
        topic.topic_name,
        partitions=[
            m.AlterShareGroupOffsetsResponsePartition(one.partition_index, error.code, error.message)
            for one in topic.partitions
        ],
    )
