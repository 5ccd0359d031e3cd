"""kafka-streams-groups, equal to the official tool of Kafka 4.4.0 in output, exit status and effect.

Its defects are kept: a group that cannot be described hides those after it, and nothing is shown of a group without
members. `groupkeeper groups` is the better form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from groupkeeper.cli.dropin import groups_text, streams_groups_text
from groupkeeper.cli.dropin.drop_in import ExecutionFailure, failing
from groupkeeper.cli.dropin.group_tool import GroupTool, group_tool
from groupkeeper.cli.dropin.options import OptionProblem, UsageProblem
from groupkeeper.cli.dropin.streams_groups_options import TABLE, check
from groupkeeper.cli.framework.output import say
from groupkeeper.cli.java import values as java
from groupkeeper.client.admin.streams_types import StreamsGroupDescription
from groupkeeper.client.admin.types import Batch, GroupState, GroupType, TopicPartition
from groupkeeper.client.batch import or_failed
from groupkeeper.operations.errors import GroupIsActive
from groupkeeper.operations.plans.reset import INACTIVE
from groupkeeper.operations.streams_groups import StreamsProgress, read_by_tasks, streams_progress, topics_of
from groupkeeper.protocol.errors import GroupIdNotFound, UnknownTopicOrPartition

if TYPE_CHECKING:
    from groupkeeper.cli.dropin.group_resets import NewOffsets, StreamsReset

TOPICS_TO_DELETE = ("delete-all-internal-topics", "delete-internal-topic")


class StreamsGroups(GroupTool):
    """The actions of kafka-streams-groups."""

    table = TABLE
    kind = "streams"
    types = (GroupType.STREAMS,)
    states = (
        GroupState.STABLE,
        GroupState.DEAD,
        GroupState.EMPTY,
        GroupState.ASSIGNING,
        GroupState.RECONCILING,
        GroupState.NOT_READY,
    )
    failed_status = 1
    usage_errors = (*GroupTool.usage_errors, OptionProblem)

    def in_order(self, group_ids: Sequence[str]) -> Sequence[str]:
        """The groups in the order of Java's set of them."""
        return java.text_order(group_ids)

    async def _describe(self, group_ids: Sequence[str]) -> Batch[str, StreamsGroupDescription]:
        describing = self.admin.describe_streams_groups(group_ids, include_topology=self.options.has("topology"))
        return await or_failed(describing, group_ids)

    @cached_property
    def reset(self) -> StreamsReset:
        """Resets offsets and deletes topics, journalled."""
        from groupkeeper.cli.dropin.group_resets import StreamsReset

        return StreamsReset(self.admin, self.options, self.values, self.recorder)

    async def reset_offsets(self) -> None:
        """--reset-offsets: the groups one after the other; a failure doesn't undo those done before."""
        group_ids = await self.group_ids()
        described = await self._describe(group_ids)
        plans: dict[str, NewOffsets] = {}
        for group_id in java.group_order(group_ids):
            plans[group_id] = await self._reset(group_id, described)
        if self.options.has("export"):
            say(self.reset.csv(_as_printed(plans)))
        else:
            say(groups_text.new_offsets(_as_printed(plans), (30, 30, 10, 15)))

    async def _reset(self, group_id: str, described: Batch[str, StreamsGroupDescription]) -> NewOffsets:
        if isinstance(described.failed.get(group_id), GroupIdNotFound):
            return await self.reset.reset(group_id)
        with failing(java.wrapped):
            group = described.result(group_id)
        if group.group_state not in INACTIVE:
            say(f"\nError: {GroupIsActive(group_id, group.group_state)}\n")
            return {}
        offsets = await self.reset.reset(group_id)
        if self.options.has("execute") and self.options.given(TOPICS_TO_DELETE):
            await self.reset.delete_topics(group_id)
        return offsets

    async def delete(self) -> None:
        """--delete: groups that aren't streams groups, or aren't empty, are not even tried."""
        from groupkeeper.cli.dropin.group_resets import internal_topics
        from groupkeeper.operations.delete import delete_any_groups

        absent = "does not exist or is not a streams group"
        wanted, failed = await self.sorted_out(absent, "java.lang.IllegalArgumentException")
        topics: Mapping[str, Sequence[str]] = {}
        if wanted and self.options.has("delete-all-internal-topics"):
            topics = internal_topics(await self.reset.described_all(wanted))
        outcome: Batch[str, None] = Batch()
        if wanted:
            deleting = delete_any_groups(self.admin, wanted, self.recorder)
            outcome = await or_failed(deleting, wanted)
        failed |= {group_id: java.described(why) for group_id, why in outcome.failed.items()}
        deleted = java.text_order(outcome.done)
        undeleted: dict[str, str] = {}
        for group_id in deleted:
            refused = (await self.reset.deleted(topics.get(group_id, ()))).failed
            for topic in java.text_order(refused):
                say(f"Failed to delete internal topic: {topic}\n")
                undeleted.setdefault(group_id, java.described(refused[topic]))
        in_order = {group_id: failed[group_id] for group_id in java.text_order(failed)}
        say(groups_text.deleted_groups(deleted, in_order, kind="streams", none="''", end="."))
        if topics and deleted:
            say(streams_groups_text.deleted_topics([each for each in deleted if each in topics], undeleted))

    async def delete_offsets(self) -> None:
        """--delete-offsets: a text on the whole, then a table of the partitions."""
        from groupkeeper.operations.delete import delete_offsets

        group_id = self.options.text("group") or ""
        arguments = self.options.texts("input-topic")
        if self.options.has("all-input-topics"):
            arguments = [f"{topic}:{partition}" for topic, partition in await self.reset.input_offsets(group_id)]
        deleted = await delete_offsets(self.admin, group_id, arguments, self.recorder)
        say(groups_text.deleted_offsets(group_id, deleted))

    async def describe(self) -> int:
        """--describe: the groups in the order given, up to the first that cannot be described.

        The result is the exit status: 1 when a topology to show is not there.
        """
        group_ids = await self.group_ids()
        described = await self._describe(group_ids)
        has_offsets = not self.options.given(("members", "state", "topology"))
        groups = list(described.done.values()) if has_offsets else []
        progress = await streams_progress(self.admin, groups)
        status = 0
        for group_id in group_ids:
            with failing(java.described):
                group = described.result(group_id)
            if group.topology_epoch is None:
                raise ExecutionFailure("java.lang.IllegalStateException: Topology information is missing")
            if self.options.has("topology"):
                say(streams_groups_text.topology(group))
                status = status if group.topology is not None else 1
            else:
                say(await self._offsets(group, progress) if has_offsets else self._members_or_state(group))
        return status

    def _members_or_state(self, group: StreamsGroupDescription) -> str:
        verbose = self.options.has("verbose")
        if self.options.has("state"):
            return streams_groups_text.note(group) + streams_groups_text.state(group, verbose=verbose)
        return streams_groups_text.members(group, verbose=verbose) if group.members else ""

    async def _offsets(self, group: StreamsGroupDescription, progress: StreamsProgress) -> str:
        """The table of offsets. A failure to fetch those of a group without members is an error."""
        topics = topics_of(group)
        for member in group.members:
            for task in member.assignment.active:
                if task.subtopology_id not in topics:
                    raise UsageProblem(f"Subtopology {task.subtopology_id} not found in group description!")
        partitions = java.partition_order(read_by_tasks(group))
        if progress.begins.failed.keys() & set(partitions):
            await self._refuse_unread(partitions, progress)
        with failing(java.described):
            for tp in partitions:
                progress.ends.result(tp)
        with failing(java.wrapped):
            progress.commits.result(group.group_id)
        if not group.members:
            return ""
        found = {tp: progress.of(group.group_id, tp) for tp in partitions}
        return streams_groups_text.offsets(group.group_id, found, verbose=self.options.has("verbose"))

    async def _refuse_unread(self, partitions: Sequence[TopicPartition], progress: StreamsProgress) -> None:
        """Raises for a missing partition, with its name: topics may differ in size, and the official tool times out."""
        from groupkeeper.cli.dropin.group_resets import refuse_unlistable

        await refuse_unlistable(self.admin, partitions, java.described)
        with failing(java.described):
            for tp in partitions:
                if isinstance(progress.begins.failed.get(tp), UnknownTopicOrPartition):
                    raise UnknownTopicOrPartition(f"Partition {tp} does not exist")
                progress.begins.result(tp)


def _as_printed(plans: Mapping[str, NewOffsets]) -> dict[str, NewOffsets]:
    """New offsets in the official tool's order."""
    return {
        group_id: {tp: plans[group_id][tp] for tp in java.partition_order(plans[group_id])}
        for group_id in java.text_order(plans)
    }


main = group_tool(StreamsGroups, check)
