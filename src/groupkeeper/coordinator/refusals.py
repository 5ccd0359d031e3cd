"""An error of the coordinator as the answer of the request it refuses: the one place where exceptions become codes."""

from __future__ import annotations

from groupkeeper.coordinator.kernel.failures import consumer_describe_failure, describe_failure
from groupkeeper.coordinator.streams.group import STREAMS_API_KEYS
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import consumer_group_describe_response, describe_groups_response
from groupkeeper.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from groupkeeper.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from groupkeeper.protocol.messages.delete_groups_request import DeleteGroupsRequest
from groupkeeper.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from groupkeeper.protocol.messages.describe_groups_request import DescribeGroupsRequest
from groupkeeper.protocol.messages.heartbeat_request import HeartbeatRequest
from groupkeeper.protocol.messages.heartbeat_response import HeartbeatResponse
from groupkeeper.protocol.messages.join_group_request import JoinGroupRequest
from groupkeeper.protocol.messages.join_group_response import JoinGroupResponse
from groupkeeper.protocol.messages.leave_group_request import LeaveGroupRequest
from groupkeeper.protocol.messages.leave_group_response import LeaveGroupResponse
from groupkeeper.protocol.messages.list_groups_request import ListGroupsRequest
from groupkeeper.protocol.messages.list_groups_response import ListGroupsResponse
from groupkeeper.protocol.messages.offset_commit_request import OffsetCommitRequest
from groupkeeper.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from groupkeeper.protocol.messages.offset_delete_request import OffsetDeleteRequest
from groupkeeper.protocol.messages.offset_delete_response import OffsetDeleteResponse
from groupkeeper.protocol.messages.offset_fetch_request import OffsetFetchRequest
from groupkeeper.protocol.messages.offset_fetch_response import OffsetFetchResponse, OffsetFetchResponseGroup
from groupkeeper.protocol.messages.sync_group_request import SyncGroupRequest
from groupkeeper.protocol.messages.sync_group_response import SyncGroupResponse
from groupkeeper.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from groupkeeper.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from groupkeeper.protocol.primitives import Message


def refuse(request: Message, error: KafkaError) -> Message:
    """The answer to a group request that failed as a whole. It comes in the form that `Coordinator.handle` takes."""
    match request:
        case JoinGroupRequest():
            return JoinGroupResponse(error_code=error.code, protocol_name=None, member_id=request.member_id)
        case SyncGroupRequest():
            return SyncGroupResponse(error_code=error.code)
        case HeartbeatRequest():
            return HeartbeatResponse(error_code=error.code)
        case LeaveGroupRequest():
            return LeaveGroupResponse(error_code=error.code)
        case OffsetCommitRequest():
            return refuse_commit(request, error)
        case OffsetFetchRequest():
            groups = [OffsetFetchResponseGroup(group.group_id, error_code=error.code) for group in request.groups]
            return OffsetFetchResponse(groups=groups)
        case TxnOffsetCommitRequest():
            return refuse_transactional_commit(request, error)
        case ConsumerGroupHeartbeatRequest():
            message = error.message if error.message != error.text else None
            return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=message)
        case OffsetDeleteRequest():
            return OffsetDeleteResponse(error_code=error.code)
        case _:
            return _refuse_listing(request, error)


def refuse_commit(request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    """OffsetCommit has no error of its own: every partition carries it."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [OffsetCommitResponsePartition(one.partition_index, error.code) for one in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def refuse_transactional_commit(request: TxnOffsetCommitRequest, error: KafkaError) -> TxnOffsetCommitResponse:
    """TxnOffsetCommit has no error of its own either."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [TxnOffsetCommitResponsePartition(one.partition_index, error.code) for one in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _refuse_listing(request: Message, error: KafkaError) -> Message:
    match request:
        case ListGroupsRequest():
            return ListGroupsResponse(error_code=error.code)
        case DescribeGroupsRequest():
            return describe_groups_response.DescribeGroupsResponse(
                groups=[describe_failure(group_id, error) for group_id in request.groups]
            )
        case DeleteGroupsRequest():
            return DeleteGroupsResponse(
                results=[DeletableGroupResult(group_id, error.code) for group_id in request.groups_names]
            )
        case ConsumerGroupDescribeRequest():
            return consumer_group_describe_response.ConsumerGroupDescribeResponse(
                groups=[consumer_describe_failure(group_id, error) for group_id in request.group_ids]
            )
    # Imported late: a broker without share or streams groups starts without them.
    if getattr(request, "API_KEY", None) in STREAMS_API_KEYS:
        from groupkeeper.coordinator.streams import requests as streams_requests

        return streams_requests.refuse(request, error)
    from groupkeeper.coordinator.share import requests as share_requests

    return share_requests.refuse(request, error)
