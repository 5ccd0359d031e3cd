"""APIs of what this broker lacks: SASL, stored ACLs, delegation tokens, quotas, SCRAM users, voters.

It answers as Apache Kafka 4.3.1 does where these are not set up, so that clients and tools which ask get that answer.
"""

from __future__ import annotations

from groupkeeper.protocol.errors import (
    DelegationTokenRequestNotAllowed,
    IllegalSaslState,
    InconsistentClusterId,
    InvalidRequest,
    KafkaError,
    ResourceNotFound,
    SecurityDisabled,
    UnsupportedSaslMechanism,
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
from groupkeeper.protocol.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from groupkeeper.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from groupkeeper.protocol.messages.create_acls_request import CreateAclsRequest
from groupkeeper.protocol.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from groupkeeper.protocol.messages.delete_acls_request import DeleteAclsRequest
from groupkeeper.protocol.messages.delete_acls_response import DeleteAclsFilterResult, DeleteAclsResponse
from groupkeeper.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from groupkeeper.protocol.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from groupkeeper.protocol.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from groupkeeper.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.protocol.primitives import RootMessage

KEYS = {
    17: (0, 1),
    29: (1, 3),
    30: (1, 3),
    31: (1, 3),
    36: (0, 2),
    38: (1, 3),
    39: (1, 2),
    40: (1, 2),
    41: (1, 3),
    48: (0, 1),
    49: (0, 1),
    50: (0, 0),
    51: (0, 0),
    80: (0, 1),
    81: (0, 0),
}

_NO_AUTHORIZER = "No Authorizer is configured."
_NO_QUOTAS = "Quotas are not supported by this broker."
_REFUSALS: dict[int, KafkaError] = {
    17: IllegalSaslState(),
    29: SecurityDisabled("No Authorizer is configured on the broker"),
    30: SecurityDisabled(_NO_AUTHORIZER),
    31: SecurityDisabled(_NO_AUTHORIZER),
    36: IllegalSaslState("SaslAuthenticate request received after successful authentication"),
    38: DelegationTokenRequestNotAllowed(),
    39: DelegationTokenRequestNotAllowed(),
    40: DelegationTokenRequestNotAllowed(),
    41: DelegationTokenRequestNotAllowed(),
}


async def handle(broker: Broker, call: Call) -> RootMessage:
    match call.message:
        case DescribeUserScramCredentialsRequest() as request:
            return _describe_users(request)
        case AlterUserScramCredentialsRequest() as request:
            return _alter_users(request)
        case AddRaftVoterRequest() | RemoveRaftVoterRequest() as change:
            if change.cluster_id != broker.cluster_id:
                raise InconsistentClusterId(
                    f'The given id "{change.cluster_id or ""}" doesn\'t match the cluster id "{broker.cluster_id}"'
                )
            raise UnsupportedVersion
        case AlterClientQuotasRequest():
            return refuse(call, InvalidRequest(_NO_QUOTAS))
    refusal = _REFUSALS.get(call.api_key)
    if refusal is None:
        return DescribeClientQuotasResponse(error_message="", entries=[])
    return refuse(call, refusal)


def refuse(call: Call, error: KafkaError) -> RootMessage:
    match call.message:
        case CreateAclsRequest(creations=creations):
            return CreateAclsResponse(results=[AclCreationResult(error.code, error.message) for _ in creations])
        case DeleteAclsRequest(filters=filters):
            return DeleteAclsResponse(
                filter_results=[DeleteAclsFilterResult(error.code, error.message) for _ in filters]
            )
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
        case AlterUserScramCredentialsRequest() as request:
            users = [one.name for one in request.deletions] + [one.name for one in request.upsertions]
            return AlterUserScramCredentialsResponse(
                results=[AlterUserScramCredentialsResult(user, error.code, error.message) for user in users]
            )
    response = message_class(type(call.message).__name__.replace("Request", "Response"))()
    response.error_code = error.code  # type: ignore[attr-defined]
    if "error_message" in response.__slots__ and error.message != error.text:
        response.error_message = error.message  # type: ignore[attr-defined]
    return response


def _describe_users(request: DescribeUserScramCredentialsRequest) -> RootMessage:
    results = []
    for user in request.users or ():
        why = f"Attempt to describe a user credential that does not exist: {user.name}"
        results.append(DescribeUserScramCredentialsResult(user.name, ResourceNotFound.code, why))
    return DescribeUserScramCredentialsResponse(results=results)


def _alter_users(request: AlterUserScramCredentialsRequest) -> RootMessage:
    unknown = "Attempt to delete a user credential that does not exist"
    results = [AlterUserScramCredentialsResult(one.name, ResourceNotFound.code, unknown) for one in request.deletions]
    results += [
        AlterUserScramCredentialsResult(
            one.name, UnsupportedSaslMechanism.code, "No listener of this broker uses SASL."
        )
        for one in request.upsertions
    ]
    return AlterUserScramCredentialsResponse(results=results)
