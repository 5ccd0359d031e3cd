"""APIs for features that this broker lacks: voters, several controllers; and SASL on an authenticated connection.
Responses are those of Apache Kafka 4.4.0 without these features.
"""

from __future__ import annotations

from groupkeeper.broker.apis._access import require_cluster
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.broker.settings.features import METADATA_VERSION, finalized_features
from groupkeeper.protocol import errors
from groupkeeper.protocol.messages import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    SaslAuthenticateRequest,
    UnregisterControllerRequest,
)
from groupkeeper.protocol.primitives import RootMessage

_UNREGISTERS_SINCE = 33
"""The level of metadata.version with UnregisterController."""


async def handle(broker: Broker, call: Call, request: RootMessage) -> RootMessage:
    match request:
        case AddRaftVoterRequest() | RemoveRaftVoterRequest() as change:
            require_cluster(broker, call, Operation.ALTER)
            if change.cluster_id != broker.cluster_id:
                raise errors.InconsistentClusterId(
                    f'The given id "{change.cluster_id or ""}" doesn\'t match the cluster id "{broker.cluster_id}"'
                )
            raise errors.UnsupportedVersion
        case UnregisterControllerRequest(controller_id=controller_id):
            require_cluster(broker, call, Operation.ALTER)
            _refuse_controller(broker, controller_id)
        case SaslAuthenticateRequest():
            raise errors.IllegalSaslState("SaslAuthenticate request received after successful authentication")
    raise errors.IllegalSaslState


def _refuse_controller(broker: Broker, controller_id: int) -> None:
    """Raises an error: this controller is active, and there is no other."""
    if controller_id == broker.config.node_id:
        raise errors.InvalidRequest("Controller cannot unregister itself while it is active.")
    if finalized_features(broker.config).get(METADATA_VERSION, 0) < _UNREGISTERS_SINCE:
        raise errors.UnsupportedVersion("The current MetadataVersion is too old to support controller unregistration.")
    raise errors.ControllerIdNotRegistered(f"Controller ID {controller_id} is not currently registered.")
