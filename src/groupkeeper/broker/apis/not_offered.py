"""APIs for features that this broker lacks: voters; and SASL on a connection that is admitted already.

It answers like Apache Kafka 4.3.1 without these features, so that clients and tools get the same answer.
"""

from __future__ import annotations

from groupkeeper.broker.apis._access import require_cluster
from groupkeeper.broker.authorizer import Operation
from groupkeeper.protocol.errors import (
    IllegalSaslState,
    InconsistentClusterId,
    KafkaError,
    UnsupportedVersion,
)
from groupkeeper.protocol.framing import message_class
from groupkeeper.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from groupkeeper.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.protocol.primitives import RootMessage

_REFUSALS: dict[int, KafkaError] = {
    17: IllegalSaslState(),
    36: IllegalSaslState("SaslAuthenticate request received after successful authentication"),
}


async def handle(broker: Broker, call: Call) -> RootMessage:
    match call.message:
        case AddRaftVoterRequest() | RemoveRaftVoterRequest() as change:
            require_cluster(broker, call, Operation.ALTER)
            if change.cluster_id != broker.cluster_id:
                raise InconsistentClusterId(
                    f'The given id "{change.cluster_id or ""}" doesn\'t match the cluster id "{broker.cluster_id}"'
                )
            raise UnsupportedVersion
    return refuse(call, _REFUSALS[call.api_key])


def refuse(call: Call, error: KafkaError) -> RootMessage:
    response = message_class(type(call.message).__name__.replace("Request", "Response"))()
    response.error_code = error.code  # type: ignore[attr-defined]
    if "error_message" in response.__slots__ and error.message != error.text:
        response.error_message = error.message  # type: ignore[attr-defined]
    return response
