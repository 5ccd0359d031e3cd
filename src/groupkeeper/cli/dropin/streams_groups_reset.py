"""Resets and deletions of kafka-streams-groups beside whole groups: offsets of input topics, and internal topics."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from groupkeeper.cli.dropin.consumer_groups_reset import GroupReset, NewOffsets, check_partitions, named_partitions
from groupkeeper.cli.dropin.drop_in import ExecutionFailure, failing
from groupkeeper.cli.framework.output import say
from groupkeeper.cli.java import values as java
from groupkeeper.cli.java.releases import release
from groupkeeper.client.admin.streams_types import StreamsGroupDescription
from groupkeeper.client.admin.types import Batch, Failure, OffsetAndMetadata, TopicPartition
from groupkeeper.client.batch import or_failed
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.plans.reset import Scenario, committed_offsets
from groupkeeper.operations.streams_groups import topics_of
from groupkeeper.protocol.errors import KafkaError, UnknownTopicOrPartition

INTERNAL = re.compile(
    r".*(?:-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic"
    r"|.-KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-\d+-topic)",
    re.ASCII | re.DOTALL,
)
"""Names that Kafka Streams gives to internal topics."""

NO_TOPICS = 'Cannot invoke "java.util.List.isEmpty()" because "internalTopics" is null'
"""The official tool's failure when --delete-all-internal-topics finds none; the offsets are reset by then."""


class StreamsReset(GroupReset):
    """Resets the offsets of streams groups. Raises ExecutionFailure, UsageProblem and what operations refuse."""

    async def described(self, group_id: str) -> StreamsGroupDescription:
        """The current description of the group. Raises ExecutionFailure."""
        with failing(java.wrapped):
            described = await self.admin.describe_streams_groups([group_id])
            return described.result(group_id)

    async def input_offsets(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets in its source topics, except topics for repartitioning."""
        group = await self.described(group_id)
        return await self._committed_in(
            group_id, {topic for part in group.subtopologies for topic in part.source_topics}
        )

    async def committed(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets in the topics that its tasks read."""
        group = await self.described(group_id)
        return await self._committed_in(group_id, {topic for some in topics_of(group).values() for topic in some})

    async def _committed_in(self, group_id: str, topics: Collection[str]) -> dict[TopicPartition, OffsetAndMetadata]:
        with failing(java.wrapped):
            offsets = await committed_offsets(self.admin, group_id)
        return {partition: offset for partition, offset in offsets.items() if partition.topic in topics}

    async def partitions(self, group_id: str) -> Sequence[TopicPartition]:
        """The partitions to reset; none if one of them has no committed offset."""
        if self.options.has("all-input-topics"):
            return list(await self.input_offsets(group_id))
        if not self.options.has("input-topic"):
            self.refuse_no_scope(release().streams_scopes)
            return ()
        partitions = await named_partitions(self.admin, self.options, "input-topic")
        await check_partitions(self.admin, partitions)
        with failing(java.wrapped):
            offsets = await committed_offsets(self.admin, group_id)
        if not offsets.keys() >= set(partitions):
            say(f"\nError: One or more topics are not part of the group '{group_id}'.\n")
            return ()
        return partitions

    async def scenario(self, group_id: str, partitions: Sequence[TopicPartition]) -> Scenario:
        """The scenario; a group that does not exist has no current offsets."""
        if self.options.has("to-current"):
            await self.described(group_id)
        return await super().scenario(group_id, partitions)

    async def delete_topics(self, group_id: str) -> None:
        """Deletes the internal topics that the options name. Raises ExecutionFailure if they name none."""
        if self.options.has("delete-all-internal-topics"):
            described = await self.described_all([group_id])
            topics = internal_topics(described).get(group_id)
            if topics is None:
                raise ExecutionFailure(NO_TOPICS)
        else:
            topics = self.options.texts("delete-internal-topic")
        failed = (await self.deleted(topics)).failed
        for failure in failed.values():
            say(_undeleted(group_id, failure))
            break

    async def described_all(self, group_ids: Sequence[str]) -> Mapping[str, StreamsGroupDescription]:
        """The groups whose internal topics are to be deleted; none when one of them cannot be described."""
        try:
            return (await self.admin.describe_streams_groups(group_ids)).all()
        except (KafkaError, ClientError) as failure:
            say(f"\nError: Retrieving internal topics failed due to {java.described(failure)}\n")
            return {}

    async def deleted(self, topics: Sequence[str]) -> Batch[str, None]:
        """Delete topics; when no broker could be asked, that failure for each."""
        if not topics:
            return Batch()
        return await or_failed(self.admin.delete_topics(topics), topics)


def internal_topics(groups: Mapping[str, StreamsGroupDescription]) -> dict[str, Sequence[str]]:
    """The internal topics of groups that have some. Prints which named topics are not internal by their names."""
    found: dict[str, Sequence[str]] = {}
    for group_id in java.text_order(groups):
        topics = []
        for topic in _topics_of_its_own(groups[group_id]):
            if topic.startswith(f"{group_id}-") and INTERNAL.fullmatch(topic):
                topics.append(topic)
            else:
                say(
                    f"\nError: The internal topic '{topic}' is not inferred as internal and thus will not be deleted "
                    f"with the group '{group_id}'.\n"
                )
        if topics:
            found[group_id] = topics
    return found


def _topics_of_its_own(group: StreamsGroupDescription) -> Iterable[str]:
    sources = {topic for part in group.subtopologies for topic in part.source_topics}
    for part in group.subtopologies:
        for some in (part.repartition_source_topics, part.state_changelog_topics):
            for topic in java.text_order(topic.name for topic in some):
                if topic not in sources:
                    yield topic


def _undeleted(group_id: str, failure: Failure) -> str:
    start = f"\nError: Deleting internal topics for group '{group_id}' failed"
    if isinstance(failure, UnknownTopicOrPartition):
        return f"{start} because the topics do not exist.\n"
    return f"{start} due to {java.described(failure)}\n"


def in_hash_order(plans: Mapping[str, NewOffsets]) -> dict[str, NewOffsets]:
    """New offsets as the official tool prints them."""
    return {
        group_id: {tp: plans[group_id][tp] for tp in java.partition_order(plans[group_id])}
        for group_id in java.text_order(plans)
    }
