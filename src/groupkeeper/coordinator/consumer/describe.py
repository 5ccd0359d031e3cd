"""ConsumerGroupDescribe (69): epochs, members and assignments of consumer groups (KIP-1099)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from groupkeeper.coordinator.consumer.group import ConsumerGroup, ConsumerMember
from groupkeeper.coordinator.epochs.checks import describe_all
from groupkeeper.coordinator.kernel.result import Immediate, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.coordinator.state import StateView
from groupkeeper.protocol.java_hash import in_timeline_order
from groupkeeper.protocol.messages import consumer_group_describe_response as described
from groupkeeper.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest

_CLASSIC_MEMBER = 0
_CONSUMER_MEMBER = 1


def describe_consumer_groups(
    state: StateView, settings_of: Callable[[str], Settings], request: ConsumerGroupDescribeRequest
) -> Result:
    """Describes groups of the consumer protocol; groups of another type are not found."""

    def describe(group: ConsumerGroup) -> described.DescribedGroup:
        members = [group.members[one] for one in in_timeline_order(group.members)]
        return described.DescribedGroup(
            group_id=group.group_id,
            group_state=group.state.value,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=group.preferred_assignor(settings_of(group.group_id).group_consumer_assignors[0]),
            members=[_describe_member(group, member, state.topics) for member in members],
        )

    groups = describe_all(state, ConsumerGroup, request.group_ids, describe, described.DescribedGroup)
    return Immediate(described.ConsumerGroupDescribeResponse(groups=groups))


def _describe_member(group: ConsumerGroup, member: ConsumerMember, topics: TopicsImage) -> described.Member:
    has = {
        topic_id: member.assigned.get(topic_id, {}).keys() | member.pending_revocation.get(topic_id, {}).keys()
        for topic_id in member.assigned.keys() | member.pending_revocation.keys()
    }
    return described.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed_topic_names,
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(has, topics),
        target_assignment=_assignment(group.targets.get(member.member_id, {}), topics),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _assignment(partitions: Mapping[bytes, Collection[int]], topics: TopicsImage) -> described.Assignment:
    return described.Assignment([described.TopicPartitions(*one) for one in topics.named(partitions)])
