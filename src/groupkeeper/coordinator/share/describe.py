"""ShareGroupDescribe (77): epochs, members and assignments of share groups (KIP-932, KIP-1099)."""

from __future__ import annotations

from collections.abc import Callable

from groupkeeper.coordinator.epochs.checks import describe_all
from groupkeeper.coordinator.kernel.result import Immediate, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.coordinator.share.group import ShareGroup, ShareMember
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol.java_hash import in_timeline_order
from groupkeeper.protocol.messages import share_group_describe_response as described
from groupkeeper.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest


def describe_share_groups(
    state: StateView, settings_of: Callable[[str], Settings], request: ShareGroupDescribeRequest
) -> Result:
    """Describes share groups; groups of another type are not found."""

    def describe(group: ShareGroup) -> described.DescribedGroup:
        members = [group.members[one] for one in in_timeline_order(group.members)]
        return described.DescribedGroup(
            group_id=group.group_id,
            group_state=group.state.value,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=settings_of(group.group_id).group_share_assignors[0],
            members=[_describe_member(member, state.topics) for member in members],
        )

    groups = describe_all(state, ShareGroup, request.group_ids, describe, described.DescribedGroup)
    return Immediate(described.ShareGroupDescribeResponse(groups=groups))


def _describe_member(member: ShareMember, topics: TopicsImage) -> described.Member:
    return described.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed_topic_names,
        assignment=described.Assignment([described.TopicPartitions(*one) for one in topics.named(member.assigned)]),
    )
