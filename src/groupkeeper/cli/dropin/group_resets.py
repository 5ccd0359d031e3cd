"""--reset-offsets of the tools for groups, one group at a time, with the official tools' warnings and refusals, and the
internal topics that kafka-streams-groups deletes with a reset or a group.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from groupkeeper.cli.dropin.consumer_groups_options import SCENARIOS, Converted
from groupkeeper.cli.dropin.drop_in import ExecutionFailure, failing, log_warning
from groupkeeper.cli.dropin.options import Options, UsageProblem, in_hash_order
from groupkeeper.cli.framework.output import say
from groupkeeper.cli.java import values as java
from groupkeeper.cli.java.releases import release
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    ConsumerGroupDescription,
    Failure,
    OffsetAndMetadata,
    SharePartitionOffset,
    TopicPartition,
)
from groupkeeper.client.batch import or_failed
from groupkeeper.client.errors import ClientError
from groupkeeper.operations import plan_csv
from groupkeeper.operations.errors import GroupIsActive, NoPlan, NothingCommitted
from groupkeeper.operations.plans.model import Adjustment, AdjustmentKind, GroupPlan, Kind, Plan
from groupkeeper.operations.plans.recorder import Recorder, commit, known_cluster_id
from groupkeeper.operations.plans.reset import (
    Scenario,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToPlan,
    ToTime,
    apply,
    committed_offsets,
    partitions_of,
    refuse_active,
    refuse_unusable,
    resolve,
)
from groupkeeper.operations.streams_groups import topics_of
from groupkeeper.operations.times import BadDatetime, BadDuration, parse_datetime, parse_duration
from groupkeeper.operations.topics import describe_topics
from groupkeeper.protocol.errors import InvalidTopicException, KafkaError, UnknownTopicOrPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.client.admin.streams_types import StreamsGroupDescription

UNKNOWN_START = (
    'Cannot invoke "org.apache.kafka.clients.admin.SharePartitionOffsetInfo.startOffset()" because the return value of '
    '"java.util.Map.get(Object)" is null'
)
"""The official tool's failure for a partition of the group that has no start offset yet."""

INTERNAL = re.compile(
    r".*(?:-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic"
    r"|.-KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-\d+-topic)",
    re.ASCII | re.DOTALL,
)
"""Names that Kafka Streams gives to internal topics."""

NO_TOPICS = 'Cannot invoke "java.util.List.isEmpty()" because "internalTopics" is null'
"""The official tool's failure when --delete-all-internal-topics finds none; the offsets are reset by then."""

NewOffsets = Mapping[TopicPartition, OffsetAndMetadata]


class GroupReset:
    """Resets groups according to the options. Raises ExecutionFailure, UsageProblem and what operations refuse."""

    def __init__(self, admin: Admin, options: Options, values: Converted, recorder: Recorder | None) -> None:
        self.admin = admin
        self.options = options
        self.values = values
        self.recorder = recorder

    async def run(self, group_id: str, described: Batch[str, ConsumerGroupDescription]) -> NewOffsets:
        """The new offsets of one group, committed with --execute; none for a group that is active."""
        try:
            with failing(java.wrapped):
                refuse_active(group_id, described)
        except GroupIsActive as problem:
            say(f"\nError: {problem}\n")
            return {}
        return await self.reset(group_id)

    async def reset(self, group_id: str) -> NewOffsets:
        """The new offsets of a group without members, committed with --execute."""
        partitions = await self.partitions(group_id)
        try:
            plan = await self._plan(group_id, partitions)
        except NoPlan:
            say(f"\nError: No reset plan for group {group_id} found{release().end}\n")
            return {}
        for adjustment in plan.adjustments:
            _tell(adjustment)
        # The official tool drops metadata and leader epochs.
        bare = {tp: OffsetAndMetadata(commit.offset) for tp, commit in plan.offsets.items()}
        changes = {tp: change._replace(after=bare.get(tp)) for tp, change in sorted(plan.changes.items())}
        plan = plan._replace(changes=changes)
        if self.options.has("execute") and not self.options.has("dry-run"):
            await self._commit(plan)
        return plan.offsets

    def csv(self, plans: Mapping[str, NewOffsets]) -> str:
        """The new offsets as --export prints them."""
        offsets = [(group_id, {tp: offset.offset for tp, offset in plan.items()}) for group_id, plan in plans.items()]
        return plan_csv.write(offsets, with_group=len(self.options.texts("group")) != 1) + "\n"

    async def partitions(self, group_id: str) -> Sequence[TopicPartition]:
        """The partitions to reset, which exist and have leaders."""
        partitions: Sequence[TopicPartition] = ()
        if self.options.has("all-topics"):
            partitions = list(await self.committed(group_id))
        elif self.options.has("topic"):
            partitions = await named_partitions(self.admin, self.options)
        else:
            self.refuse_no_scope()
        await check_partitions(self.admin, partitions)
        return partitions

    def refuse_no_scope(self, scopes: str = "--all-topics, --topic") -> None:
        """Refuses a reset without topics or a file. `scopes`: the options that the text names."""
        if not self.options.has("from-file"):
            raise UsageProblem(f"One of the reset scopes should be defined: {scopes}.")

    async def committed(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets, in partitions that may be reset."""
        with failing(java.wrapped):
            return await committed_offsets(self.admin, group_id)

    async def _plan(self, group_id: str, partitions: Sequence[TopicPartition]) -> GroupPlan:
        scenario = await self.scenario(group_id, partitions)
        if isinstance(scenario, ToPlan):
            # A plan's partitions are not checked before; the lookup of their log ends finds problems with them.
            await refuse_unlistable(self.admin, scenario.offsets, java.wrapped)
            partitions = list(scenario.offsets)
        else:
            refuse_duplicates(partitions)
        with failing(java.wrapped):
            return await resolve(self.admin, group_id, partitions, scenario)

    async def scenario(self, group_id: str, partitions: Sequence[TopicPartition]) -> Scenario:
        """The scenario that the options select."""
        options = self.options
        if options.has("to-offset"):
            return ToOffset(self.values.to_offsets[0])
        if options.has("to-earliest"):
            return ToEarliest()
        if options.has("to-latest"):
            return ToLatest()
        if options.has("shift-by"):
            return self._shift(partitions, await self.committed(group_id))
        if options.has("to-datetime") or options.has("by-duration"):
            return ToTime(self._time_ms())
        if options.has("from-file"):
            return self._from_file(group_id)
        if options.has("to-current"):
            return ToCurrent(clamp=False)
        names = ", ".join(f"[{name}]" for name in in_hash_order(SCENARIOS))
        raise UsageProblem(f"Option '[reset-offsets]' requires one of the following scenarios: [{names}]")

    def _shift(self, partitions: Sequence[TopicPartition], committed: NewOffsets) -> Scenario:
        """The shift by the official tool's arithmetic, which wraps around."""
        shifted = {}
        for tp in partitions:
            if tp not in committed:
                raise NothingCommitted(tp)
            if tp in shifted:
                raise ExecutionFailure(f"Duplicate key {tp}")
            shifted[tp] = java.to_long(committed[tp].offset + (self.values.shift_by or 0))
        return ToPlan(shifted)

    def _time_ms(self) -> int:
        try:
            if self.options.has("to-datetime"):
                return parse_datetime(self.options.texts("to-datetime")[0])
            return parse_duration(self.values.by_duration or "").before_ms(time.time_ns())
        except BadDatetime as problem:
            raise ExecutionFailure(f"java.text.ParseException: {problem}") from None
        except BadDuration as problem:
            raise ExecutionFailure(str(problem)) from None

    def _from_file(self, group_id: str) -> Scenario:
        path = self.options.texts("from-file")[0]
        groups = self.options.texts("group")
        try:
            text = Path(path).read_bytes().decode("utf-8", "replace") if path else ""
        except OSError:
            text = None
        if text is None or not path:
            raise ExecutionFailure(f"java.io.IOException: Unable to read file {path}")
        try:
            plans = plan_csv.read(text, groups[0] if len(groups) == 1 else None, fill_gaps=True)
        except plan_csv.NegativeOffset:
            raise UsageProblem("Invalid negative offset") from None
        except plan_csv.BadPlan as problem:
            raise ExecutionFailure(f"com.fasterxml.jackson.core.JsonProcessingException: {problem}") from None
        if group_id not in plans:
            raise NoPlan(group_id, path)
        return ToPlan(plans[group_id])

    async def _commit(self, plan: GroupPlan) -> None:
        with failing(java.message):
            batch = await apply(self.admin, plan, self.recorder)
        if batch.failed:
            raise not_altered(batch.failed)


def _tell(adjustment: Adjustment) -> None:
    """Warns if an offset isn't the requested one, where and as the official tool does."""
    if adjustment.kind is AdjustmentKind.NOTHING_LATER:
        topic, partition = adjustment.tp
        # The partition need not be empty: it has no record at or after the time.
        say(f"\nWarn: Partition {partition} from topic {topic} is empty. Falling back to latest known offset.\n")
        return
    beyond = "higher than latest" if adjustment.kind is AdjustmentKind.ABOVE_LOG_END else "lower than earliest"
    log_warning(
        f"New offset ({adjustment.asked}) is {beyond} offset for topic partition {adjustment.tp}. "
        f"Value will be set to {adjustment.used}{release().end}",
        release().resetter,
    )


async def named_partitions(admin: Admin, options: Options, option: str = "topic") -> Sequence[TopicPartition]:
    """The partitions that --topic, or the other option, names. Raises BadTopicArgument, ExecutionFailure."""
    arguments = options.texts(option)
    whole = [argument for argument in arguments if ":" not in argument]
    numbered = [argument for argument in arguments if ":" in argument]
    with failing(java.message):
        return await partitions_of(admin, [*numbered, *java.asked_topics(whole)])


async def check_partitions(admin: Admin, partitions: Sequence[TopicPartition]) -> None:
    """Refuse partitions that don't exist or have no leader.

    Raises ExecutionFailure (of several topics that can't be described, for the one that Java's map has first),
    PartitionsMissing, PartitionsLeaderless.
    """
    topics = java.asked_topics(java.text_order(tp.topic for tp in partitions))
    with failing(java.wrapped):
        refuse_unusable(partitions, (await describe_topics(admin, topics)).all())


async def refuse_unlistable(
    admin: Admin, partitions: Iterable[TopicPartition], text_of: Callable[[Exception], str]
) -> None:
    """Names the first topic for which a lookup of log ends finds no metadata. Raises ExecutionFailure."""
    wanted = list(partitions)
    topics = list(dict.fromkeys(tp.topic for tp in wanted))
    if not topics:
        return
    described = await describe_topics(admin, topics)
    for tp in wanted:
        failure = described.failed.get(tp.topic)
        if failure is None:
            continue
        if isinstance(failure, InvalidTopicException):
            why = f"due to invalid topic `{tp.topic}`"
        elif isinstance(failure, UnknownTopicOrPartition):
            why = f"because metadata for topic `{tp.topic}` could not be found"
        else:
            raise ExecutionFailure(text_of(failure))
        raise ExecutionFailure(text_of(type(failure)(f"Failed to fetch metadata for partition {tp} {why}")))


def refuse_duplicates(partitions: Sequence[TopicPartition]) -> None:
    """Refuses overlapping topics, which are too much for the official tool's maps. Raises ExecutionFailure."""
    if len(set(partitions)) < len(partitions):
        twice = next(tp for tp in partitions if partitions.count(tp) > 1)
        raise ExecutionFailure(f"Duplicate key {twice}")


def not_altered(partitions: Collection[TopicPartition]) -> ExecutionFailure:
    """The failure of a reset if the coordinator refuses some partitions."""
    names = ", ".join(map(str, java.partition_order(partitions)))
    return ExecutionFailure(f"Failed altering group offsets for the following partitions: [{names}]")


class ShareReset(GroupReset):
    """Resets the start offsets of share groups, with an Admin that has them as commits. Raises ExecutionFailure,
    UsageProblem and what operations refuse.
    """

    async def partitions(self, group_id: str) -> Sequence[TopicPartition]:
        """The partitions that --topic names, otherwise the group's, with --from-file too."""
        if self.options.has("topic"):
            partitions = await named_partitions(self.admin, self.options)
        else:
            partitions = list(await self._starts(group_id))
        await check_partitions(self.admin, partitions)
        return partitions

    async def _starts(self, group_id: str) -> Mapping[TopicPartition, SharePartitionOffset | None]:
        with failing(java.message):
            listed = await self.admin.list_share_group_offsets({group_id: None})
            return listed.result(group_id).done

    async def scenario(self, group_id: str, partitions: Sequence[TopicPartition]) -> Scenario:
        """The scenario that the options select."""
        if self.options.has("to-current"):
            starts = await self._starts(group_id)
            if any(starts.get(tp, tp) is None for tp in partitions):
                raise ExecutionFailure(UNKNOWN_START)
        return await super().scenario(group_id, partitions)

    async def _commit(self, plan: GroupPlan) -> None:
        """Sets start offsets. A refusal of the whole group is shown for each partition, so only if there is one."""
        if not plan.changes:
            return
        cluster_id = None
        if self.recorder is not None:
            cluster_id = await known_cluster_id(self.admin)
        outcome = await commit(self.admin, Plan(cluster_id, (plan,), Kind.SHARE_RESET), self.recorder)
        refusal = outcome.failed.get(plan.group_id)
        failed: dict[TopicPartition, Failure]
        if refusal is None:
            failed = outcome.done[plan.group_id].failed
        elif isinstance(refusal, KafkaError):
            failed = dict.fromkeys(plan.changes, refusal)
        else:
            raise ExecutionFailure(java.message(refusal))
        if failed:
            in_order = [tp for tp in java.partition_order(plan.changes) if tp in failed]
            reason = f"{java.message(failed[in_order[0]])} " if release().bare_questions else ""
            raise ExecutionFailure(f"{reason}{not_altered(in_order)}")


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
        return {tp: offset for tp, offset in offsets.items() if tp.topic in topics}

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
