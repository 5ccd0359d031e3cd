"""kafka-consumer-groups, equal to the official tool of Kafka 4.4.0 in output, exit status and effect.

Its defects are kept: exit status 0 on failure, one failure hides all other groups, a reset drops metadata and leader
epochs, a shift may overflow. `groupkeeper groups` is the better form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from groupkeeper.cli.dropin import groups_text
from groupkeeper.cli.dropin.consumer_groups_options import TABLE, check
from groupkeeper.cli.dropin.drop_in import ExecutionFailure, failing, read_options, refuse_usage, states_of, tool
from groupkeeper.cli.dropin.group_tool import GroupTool, execute
from groupkeeper.cli.dropin.options import OptionProblem, UsageProblem
from groupkeeper.cli.framework.output import complain_and_say, say
from groupkeeper.cli.java import values as java
from groupkeeper.cli.java.assignments import read_again
from groupkeeper.client.admin.types import (
    Batch,
    ConsumerGroupDescription,
    Failure,
    GroupState,
    GroupType,
    OffsetAndMetadata,
    TopicPartition,
)
from groupkeeper.client.batch import or_failed


@tool
def main(arguments: Sequence[str]) -> int:
    """Run the tool with these arguments; the result is the exit status."""
    options = read_options(TABLE, arguments, check, with_help=(UsageProblem,))
    if isinstance(options, int):
        return options
    if not options.has("validate-regex"):
        return execute(ConsumerGroups, options)
    try:
        say(regex_text(options.text("validate-regex") or ""))
    except OptionProblem as problem:
        return refuse_usage(TABLE, str(problem))
    return 0


def regex_text(pattern: str) -> str:
    """The output of --validate-regex for a pattern."""
    from groupkeeper.protocol.re2_syntax import BadPattern, check_pattern

    try:
        check_pattern(pattern)
    except BadPattern as problem:
        return f"The regular expression `{pattern}` is invalid: {problem}.\n"
    return f"The regular expression `{pattern}` is valid.\n"


class ConsumerGroups(GroupTool):
    """The actions of kafka-consumer-groups; when one fails, it has printed nothing."""

    table = TABLE
    kind = "consumer"
    types = (GroupType.CLASSIC, GroupType.CONSUMER)
    protocol_types = ("", "consumer")
    states = (
        GroupState.PREPARING_REBALANCE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.STABLE,
        GroupState.DEAD,
        GroupState.EMPTY,
        GroupState.ASSIGNING,
        GroupState.RECONCILING,
    )

    async def list(self) -> int | None:
        """--list, with or without --state and --type."""
        if not self.options.has("type") and not self.options.has("state"):
            return await super().list()
        types = self.types_of(self.options.text("type") or "")
        states = states_of(self.options.text("state") or "", self.states)
        with failing(java.described):
            groups = await self.listings(states, types)
        say(groups_text.listing(groups, types=self.options.has("type"), states=self.options.has("state")))
        return None

    def types_of(self, text: str) -> Sequence[GroupType]:
        """The types of a list separated by commas. Raises UsageProblem."""
        types = [GroupType.parse(java.trim(part)) for part in java.split(text, ",")] if text else []
        if not set(types) <= set(self.types):
            raise UsageProblem(f"Invalid types list '{text}'. Valid types are: {', '.join(map(str, self.types))}")
        return types

    async def describe_groups(self, group_ids: Sequence[str]) -> Batch[str, ConsumerGroupDescription]:
        """The groups' descriptions; when no broker could be asked, that failure for each of them."""
        from groupkeeper.operations.describe import describe_groups

        described = await describe_groups(self.admin, group_ids)
        read_again(described)
        return described

    async def describe(self) -> None:
        """--describe: nothing is printed unless every group can be described."""
        group_ids = await self.group_ids()
        verbose = self.options.has("verbose")
        if not self.options.has("members") and not self.options.has("state"):
            await self.describe_offsets(group_ids, verbose=verbose)
            return
        described = await self.describe_groups(group_ids)
        groups = in_order(described, group_ids)
        if self.options.has("members"):
            complain_and_say(
                (note, error + groups_text.members(group, verbose=verbose)) for group, note, error in judged(groups)
            )
        else:
            complain_and_say(
                (note, error or groups_text.state(group, verbose=verbose)) for group, note, error in judged(groups)
            )

    async def describe_offsets(self, group_ids: Sequence[str], *, verbose: bool) -> None:
        """The tables of offsets. A group that cannot be described is reported before problems with any offsets."""
        from groupkeeper.operations.describe import describe_offsets
        from groupkeeper.protocol.errors import LeaderNotAvailable

        described: Batch[str, ConsumerGroupDescription] = Batch()
        failed: dict[str, Failure] = {}
        tables: dict[str, str] = {}
        with failing(java.wrapped):
            async for part in describe_offsets(self.admin, group_ids):
                described.done.update(part.groups.done)
                described.failed.update(part.groups.failed)
                failed |= part.offsets.failed
                for group_id, offsets in part.offsets.done.items():
                    for failure in offsets.table.failures:
                        if not isinstance(failure, LeaderNotAvailable):
                            failed.setdefault(group_id, failure)
                    tables[group_id] = groups_text.offsets(offsets, verbose=verbose)
        read_again(described)
        groups = in_order(described, group_ids)
        with failing(java.wrapped):
            raise_first(failed, [group.group_id for group in groups])
        complain_and_say((note, error or tables[group.group_id]) for group, note, error in judged(groups))

    async def delete(self) -> None:
        """--delete."""
        from groupkeeper.operations.delete import delete_any_groups

        group_ids = await self.group_ids()
        deleting = delete_any_groups(self.admin, group_ids, self.recorder)
        outcome = await or_failed(deleting, group_ids)
        in_order = java.text_order(outcome.failed)
        failed = {group_id: java.described(outcome.failed[group_id]) for group_id in in_order}
        say(groups_text.deleted_groups(java.text_order(outcome.done), failed))

    async def delete_offsets(self) -> None:
        """--delete-offsets: a text on the whole, then a table of the partitions."""
        from groupkeeper.operations.delete import delete_offsets

        group_id = self.options.text("group") or ""
        topics = self.options.texts("topic")
        deleted = await delete_offsets(self.admin, group_id, topics, self.recorder)
        say(groups_text.deleted_offsets(group_id, deleted))

    async def reset_offsets(self) -> None:
        """--reset-offsets: the groups one after the other; a failure doesn't undo those done before."""
        from groupkeeper.cli.dropin.group_resets import GroupReset

        group_ids = await self.group_ids()
        described = await self.describe_groups(group_ids)
        reset = GroupReset(self.admin, self.options, self.values, self.recorder)
        plans: dict[str, Mapping[TopicPartition, OffsetAndMetadata]] = {}
        for group_id in java.group_order(group_ids):
            plans[group_id] = await reset.run(group_id, described)
        if self.options.has("export"):
            say(reset.csv(plans))
        else:
            say(groups_text.new_offsets(plans))


def raise_first(failed: Mapping[str, Failure], group_ids: Sequence[str]) -> None:
    """Raises the failure that the official tool finds first, if there is one."""
    if failed:
        raise next(failed[group_id] for group_id in java.group_order(group_ids) if group_id in failed)


def in_order(
    described: Batch[str, ConsumerGroupDescription], group_ids: Sequence[str]
) -> Sequence[ConsumerGroupDescription]:
    """The groups as they are printed. Raises ExecutionFailure when one could not be described."""
    with failing(java.described):
        raise_first(described.failed, group_ids)
    return sorted(described.done.values(), key=lambda group: java.sort_key(group.group_id))


def judged(groups: Iterable[ConsumerGroupDescription]) -> Iterator[tuple[ConsumerGroupDescription, str, str]]:
    """Groups with the text about their state for standard error, or for standard output if they are dead.

    Raises ExecutionFailure for an unknown state.
    """
    for group in groups:
        if group.group_state is GroupState.DEAD:
            yield group, "", f"\nError: Consumer group '{group.group_id}' does not exist.\n"
        elif group.group_state not in ConsumerGroups.states:
            raise ExecutionFailure(f"Expected a valid consumer group state, but found '{group.group_state}'.")
        else:
            yield group, groups_text.note(group.group_id, group.group_state), ""
