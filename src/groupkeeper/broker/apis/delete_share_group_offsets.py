"""DeleteShareGroupOffsets (92): deletes topics' offsets of an empty share group (KIP-932)."""

from __future__ import annotations

from groupkeeper.broker.apis._share_groups import ask_without_hidden
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.protocol.errors import TopicAuthorizationFailed
from groupkeeper.protocol.messages import DeleteShareGroupOffsetsRequestTopic, DeleteShareGroupOffsetsResponseTopic
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    return await ask_without_hidden(broker, call, Operation.DELETE, _hidden)


def _hidden(topic: DeleteShareGroupOffsetsRequestTopic) -> DeleteShareGroupOffsetsResponseTopic:
    error = TopicAuthorizationFailed()
    return DeleteShareGroupOffsetsResponseTopic(topic.topic_name, error_code=error.code, error_message=error.message)
