"""The responses to requests that the coordinator refuses: the only place where exceptions become error codes."""

from __future__ import annotations

from groupkeeper.coordinator.kernel.failures import describe_failure
from groupkeeper.coordinator.rows import TYPE_BY_API_KEY, row_of
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import describe_groups_response
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
from groupkeeper.protocol.primitives import Message, RootMessage


def refuse(request: Message, error: KafkaError) -> Message:
    """The answer to a group request that failed as a whole; requests have the form that `Coordinator.handle` takes."""
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
        case OffsetDeleteRequest():
            return OffsetDeleteResponse(error_code=error.code)
        case _:
            return _refuse_listing(request, error)


def refuse_commit(request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    """OffsetCommit has no top-level error: every partition carries the error code."""
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
    """TxnOffsetCommit has no top-level error either."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
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
    assert isinstance(request, RootMessage)
    return row_of(TYPE_BY_API_KEY[request.API_KEY]).refuse(request, error)
