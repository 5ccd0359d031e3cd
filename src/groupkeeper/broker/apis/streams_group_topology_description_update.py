"""StreamsGroupTopologyDescriptionUpdate (93): a member describes its topology (KIP-1331)."""

from __future__ import annotations

from groupkeeper.broker.apis._groups import may, without_streams_groups
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.call import Call
from groupkeeper.coordinator.epochs.checks import check_texts
from groupkeeper.coordinator.refusals import refuse as refuse_request
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import GroupAuthorizationFailed, InvalidRequest, KafkaError, UnsupportedVersion
from groupkeeper.protocol.primitives import RootMessage


async def handle(broker: Broker, call: Call) -> RootMessage:
    request = call.message
    assert isinstance(request, m.StreamsGroupTopologyDescriptionUpdateRequest)
    trouble = without_streams_groups(broker) or _trouble_of(broker, call, request)
    if trouble is not None:
        response = refuse_request(request, trouble)
    else:
        response = await broker.groups.ask(request.group_id, request, call)
    assert isinstance(response, m.StreamsGroupTopologyDescriptionUpdateResponse)
    return response


def _trouble_of(
    broker: Broker, call: Call, request: m.StreamsGroupTopologyDescriptionUpdateRequest
) -> KafkaError | None:
    """What refuses the request before its group is looked at, or None."""
    if not may(broker, call, Operation.READ, request.group_id):
        return GroupAuthorizationFailed()
    if not broker.config.group_streams_topology_description_plugin_class:
        return UnsupportedVersion("The broker has no streams group topology description plugin configured.")
    try:
        check_texts(MemberId=request.member_id, GroupId=request.group_id)
    except InvalidRequest as refusal:
        return refusal
    return None
