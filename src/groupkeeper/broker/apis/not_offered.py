"""APIs of what this broker lacks: delegation tokens, quotas, voters; and SASL where a connection is admitted already.

It answers as Apache Kafka 4.3.1 does where these are not set up, so that clients and tools which ask get that answer.
"""

from __future__ import annotations

from groupkeeper.broker.apis._access import require_cluster
from groupkeeper.broker.authorizer import Operation
from groupkeeper.protocol.errors import (
    DelegationTokenRequestNotAllowed,
    IllegalSaslState,
    InconsistentClusterId,
    InvalidRequest,
    KafkaError,
    UnsupportedVersion,
)
from groupkeeper.protocol.framing import message_class
from groupkeeper.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from groupkeeper.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest
from groupkeeper.protocol.messages.alter_client_quotas_response import (
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
)
from groupkeeper.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from groupkeeper.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from groupkeeper.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.protocol.primitives import RootMessage

KEYS = {
    17: (0, 1),
    36: (0, 2),
    38: (1, 3),
    39: (1, 2),
    40: (1, 2),
    41: (1, 3),
    48: (0, 1),
    49: (0, 1),
    80: (0, 1),
    81: (0, 0),
}

_NO_QUOTAS = "Quotas are not supported by this broker."
_REFUSALS: dict[int, KafkaError] = {
    17: IllegalSaslState(),
    36: IllegalSaslState("SaslAuthenticate request received after successful authentication"),
    38: DelegationTokenRequestNotAllowed(),
    39: DelegationTokenRequestNotAllowed(),
    40: DelegationTokenRequestNotAllowed(),
    41: DelegationTokenRequestNotAllowed(),
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
        case AlterClientQuotasRequest():
            require_cluster(broker, call, Operation.ALTER_CONFIGS)
            return refuse(call, InvalidRequest(_NO_QUOTAS))
    refusal = _REFUSALS.get(call.api_key)
    if refusal is None:
        require_cluster(broker, call, Operation.DESCRIBE_CONFIGS)
        return DescribeClientQuotasResponse(error_message="", entries=[])
    return refuse(call, refusal)


def refuse(call: Call, error: KafkaError) -> RootMessage:
    match call.message:
        case AlterClientQuotasRequest(entries=entries):
            return AlterClientQuotasResponse(
                entries=[
                    EntryData(
                        error.code,
                        error.message,
                        [EntityData(one.entity_type, one.entity_name) for one in entry.entity],
                    )
                    for entry in entries
                ]
            )
        case DescribeClientQuotasRequest():
            return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    response = message_class(type(call.message).__name__.replace("Request", "Response"))()
    response.error_code = error.code  # type: ignore[attr-defined]
    if "error_message" in response.__slots__ and error.message != error.text:
        response.error_message = error.message  # type: ignore[attr-defined]
    return response
