"""Answers about consumer, share and streams groups, and what share groups ask of the share coordinator, as text."""

from collections.abc import Iterable
from typing import Any

from tests.scenarios.group_records import partitions_text, tasks_text, topic_name
from tests.scenarios.unread import Reading

from groupkeeper.coordinator.kernel.result import Work
from groupkeeper.coordinator.share.work import DeleteShares, InitializeShares
from groupkeeper.coordinator.share_state.state import SharePartitionKey
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages import share_group_describe_response as share
from groupkeeper.protocol.messages import streams_group_describe_response as streams


def answer_lines(who: str, response: Reading, error_name: Any) -> list[str] | None:
    """The lines of an answer about such groups; None for others."""
    match response.message:
        case m.ConsumerGroupHeartbeatResponse() | m.ShareGroupHeartbeatResponse() | m.StreamsGroupHeartbeatResponse():
            name = type(response.message).__name__.partition("Group")[0].lower().replace("consumer", "beat")
            if response.error_code:
                return [f"{name} {who}: {error_name(response.error_code)} {response.error_message}"]
            return [f"{name} {who}: epoch={response.member_epoch}{_told(response)}"]
        case m.ConsumerGroupDescribeResponse() | m.ShareGroupDescribeResponse() | m.StreamsGroupDescribeResponse():
            return [line for group in response.groups for line in _group_lines(group, error_name)]
        case m.AlterShareGroupOffsetsResponse() | m.DeleteShareGroupOffsetsResponse():
            name = "share-alter" if isinstance(response.message, m.AlterShareGroupOffsetsResponse) else "share-delete"
            if response.error_code:
                return [f"{name} {who}: {error_name(response.error_code)} {response.error_message}"]
            return [f"{name} {who}: {', '.join(_outcomes(response, error_name)) or 'nothing'}"]
    return None


def _told(response: Reading) -> str:
    """What a member is told beside its epoch: its partitions or tasks if they come with it."""
    if not isinstance(response.message, m.StreamsGroupHeartbeatResponse):
        return "" if response.assignment is None else f" {partitions_text(response.assignment.topic_partitions)}"
    text = "" if response.active_tasks is None else f" {tasks_text(response)}"
    for endpoint in response.partitions_by_user_endpoint or ():
        reads = [f"{one.topic}/{index}" for one in endpoint.active_partitions for index in one.partitions]
        text += f" {endpoint.user_endpoint.host}:{endpoint.user_endpoint.port}={','.join(reads) or 'nothing'}"
    return text + "".join(f" [{one.status_detail}]" for one in response.status or ())


def _group_lines(group: Reading, error_name: Any) -> list[str]:
    """A described group and its members, by id."""
    if group.error_code:
        return [f"group {group.group_id}: {error_name(group.error_code)} {group.error_message}"]
    head = f"group {group.group_id}: {group.group_state} epoch={group.group_epoch}"
    lines = [f"{head} assignment-epoch={group.assignment_epoch} {group.assignor_name}"]
    if isinstance(group.message, streams.DescribedGroup):
        lines += _subtopology_lines(group.topology)
    members = [f"  {_member_text(one)}{one.rest()}" for one in sorted(group.members, key=lambda one: one.member_id)]
    lines[0] += group.rest()
    return lines + members


def _subtopology_lines(topology: Any) -> Iterable[str]:
    for one in () if topology is None else topology.subtopologies or ():
        internal = (*one.repartition_source_topics, *one.state_changelog_topics)
        topics = [*one.source_topics, *(f"{topic.name}={topic.partitions}" for topic in internal)]
        yield f"  subtopology {one.subtopology_id}: {' '.join(topics)}"


def _member_text(member: Any) -> str:
    if isinstance(member.message, streams.Member):
        has, shall = tasks_text(member.assignment), tasks_text(member.target_assignment)
        return f"{member.member_id} epoch={member.member_epoch} {has}; target {shall}"
    has = partitions_text(member.assignment.topic_partitions)
    if isinstance(member.message, share.Member):
        return f"{member.member_id} epoch={member.member_epoch} {has}"
    static = "" if member.instance_id is None else f"({member.instance_id})"
    shall = partitions_text(member.target_assignment.topic_partitions)
    kind = " classic" if member.member_type == 0 else ""
    return f"{member.member_id}{static} epoch={member.member_epoch} {has} -> {shall}{kind}"


def _outcomes(response: Reading, error_name: Any) -> Iterable[str]:
    if isinstance(response.message, m.DeleteShareGroupOffsetsResponse):
        yield from (f"{topic.topic_name} {error_name(topic.error_code)}{topic.rest()}" for topic in response.responses)
        return
    for altered in response.responses:
        for one in altered.partitions:
            yield f"{altered.topic_name}/{one.partition_index} {error_name(one.error_code)}{one.rest()}"


def work_text(work: Work) -> str:
    """What is asked of the share coordinator."""
    if isinstance(work, InitializeShares):
        offsets = (
            f"{topic_name(topic_id)}/{partition}={offset}"
            for topic_id, partitions in work.start_offsets.items()
            for partition, offset in partitions.items()
        )
        return f"initialize {work.group_id} state-epoch={work.state_epoch} {' '.join(offsets)}"
    assert isinstance(work, DeleteShares)
    return f"forget {' '.join(map(_share_partition_text, work.share_partitions()))}".rstrip()


def _share_partition_text(key: SharePartitionKey) -> str:
    return f"{key.group_id}:{topic_name(key.topic_id)}/{key.partition}"
