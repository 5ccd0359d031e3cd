"""The responses to requests that the coordinator refuses: the only place where exceptions become error codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from groupkeeper.coordinator.handlers import TYPE_BY_API_KEY, handler_of
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import describe_groups_response
from groupkeeper.protocol.primitives import Message, RootMessage

D = TypeVar("D")
"""The class of a described group in a response."""


def refuse(request: Message, error: KafkaError) -> Message:
    """The response to a group request that failed as a whole, in the form that `Coordinator.handle` takes."""
    match request:
        case m.JoinGroupRequest():
            return m.JoinGroupResponse(error_code=error.code, protocol_name=None, member_id=request.member_id)
        case m.SyncGroupRequest():
            return m.SyncGroupResponse(error_code=error.code)
        case m.HeartbeatRequest():
            return m.HeartbeatResponse(error_code=error.code)
        case m.LeaveGroupRequest():
            return m.LeaveGroupResponse(error_code=error.code)
        case m.OffsetCommitRequest():
            return refuse_commit(request, error)
        case m.OffsetFetchRequest():
            groups = [m.OffsetFetchResponseGroup(group.group_id, error_code=error.code) for group in request.groups]
            return m.OffsetFetchResponse(groups=groups)
        case m.TxnOffsetCommitRequest():
            return refuse_transactional_commit(request, error)
        case m.OffsetDeleteRequest():
            return m.OffsetDeleteResponse(error_code=error.code)
        case _:
            return _refuse_listing(request, error)


def refuse_commit(request: m.OffsetCommitRequest, error: KafkaError) -> m.OffsetCommitResponse:
    """OffsetCommit has no top-level error: every partition carries the error code."""
    return m.OffsetCommitResponse(
        topics=[
            m.OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [m.OffsetCommitResponsePartition(one.partition_index, error.code) for one in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def refuse_transactional_commit(request: m.TxnOffsetCommitRequest, error: KafkaError) -> m.TxnOffsetCommitResponse:
    """TxnOffsetCommit has no top-level error either."""
    return m.TxnOffsetCommitResponse(
        topics=[
            m.TxnOffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [m.TxnOffsetCommitResponsePartition(one.partition_index, error.code) for one in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _refuse_listing(request: Message, error: KafkaError) -> Message:
    match request:
        case m.ListGroupsRequest():
            return m.ListGroupsResponse(error_code=error.code)
        case m.DescribeGroupsRequest():
            return describe_groups_response.DescribeGroupsResponse(
                groups=[describe_failure(group_id, error) for group_id in request.groups]
            )
        case m.DeleteGroupsRequest():
            return m.DeleteGroupsResponse(
                results=[m.DeletableGroupResult(group_id, error.code) for group_id in request.groups_names]
            )
    assert isinstance(request, RootMessage)
    return handler_of(TYPE_BY_API_KEY[request.API_KEY]).refuse(request, error)


def describe_failure(group_id: str, error: KafkaError) -> describe_groups_response.DescribedGroup:
    """One group's failure in DescribeGroups."""
    return describe_groups_response.DescribedGroup(error.code, None, group_id)


def failure_of(described: Callable[[int, str | None, str], D], group_id: str, error: KafkaError) -> D:
    """One group's failure when describing consumer, share or streams groups; `described`: class of the result."""
    return described(error.code, own_message(error), group_id)


def own_message(error: KafkaError) -> str | None:
    """The error message of a response: None if it only repeats the error code's text, as in Apache Kafka."""
    return None if error.message == error.text else error.message
