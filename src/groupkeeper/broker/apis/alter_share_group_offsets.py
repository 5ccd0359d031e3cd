"""AlterShareGroupOffsets (91): sets the start offsets of an empty share group (KIP-932)."""

from __future__ import annotations

from groupkeeper.broker.apis._share_groups import ask_without_hidden
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import TopicAuthorizationFailed
from groupkeeper.protocol.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequestTopic
from groupkeeper.protocol.messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    return await ask_without_hidden(broker, call, Operation.READ, _hidden)


def _hidden(topic: AlterShareGroupOffsetsRequestTopic) -> AlterShareGroupOffsetsResponseTopic:
    error = TopicAuthorizationFailed()
    return AlterShareGroupOffsetsResponseTopic(
        topic.topic_name,
        partitions=[
            AlterShareGroupOffsetsResponsePartition(one.partition_index, error.code, error.message)
            for one in topic.partitions
        ],
    )
