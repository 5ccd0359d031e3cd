"""kafka-consumer-groups, equal to the official tool of Kafka 4.4.0 in output, exit status and effect.

Its defects are kept: exit status 0 on failure, one failure hides all other groups, a reset drops metadata and leader
epochs, a shift may overflow. ``groupkeeper groups`` is the better form.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from groupkeeper.cli.dropin import groups_text
from groupkeeper.cli.dropin.bootstrap import open_admin
from groupkeeper.cli.dropin.consumer_groups_options import TABLE, check, converted
from groupkeeper.cli.dropin.drop_in import (
    ExecutionFailure,
    answers,
    failing,
    refuse_usage,
    run_tool,
    show_help_or_version,
    states_of,
)
from groupkeeper.cli.dropin.options import OptionProblem, Options, UsageProblem
from groupkeeper.cli.framework.output import complain, complain_and_say, say
from groupkeeper.cli.java import values as java
from groupkeeper.cli.java.assignments import read_again
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    ConsumerGroupDescription,
    Failure,
    GroupState,
    GroupType,
    OffsetAndMetadata,
    TopicPartition,
)
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.errors import BadTopicArgument, NothingCommitted, OperationRefused
from groupkeeper.protocol.errors import KafkaError

if TYPE_CHECKING:
    from groupkeeper.operations.plans.recording import Recorder

STATES = (
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
    GroupState.DEAD,
    GroupState.EMPTY,
    GroupState.ASSIGNING,
    GroupState.RECONCILING,
)
TYPES = (GroupType.CLASSIC, GroupType.CONSUMER)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; the result is the exit status."""
    return run_tool(run, arguments)


def run(arguments: Sequence[str]) -> int:
    """Read the arguments, check them and execute. Errors of the parser come without the help, other ones with it."""
    if not arguments:
        return refuse_usage(TABLE)
    try:
        options = TABLE.parse(arguments)
        status = show_help_or_version(TABLE, options)
        if status is not None:
            return status
        check(options, lambda text: complain(f"{text}\n"))
    except OptionProblem as problem:
        complain(f"{problem}\n")
        return 1
    except UsageProblem as problem:
        return refuse_usage(TABLE, str(problem))
    try:
        execute(options)
    except (UsageProblem, OptionProblem, BadTopicArgument, NothingCommitted) as problem:
        return refuse_usage(TABLE, str(problem))
    return 0


def execute(options: Options) -> None:
    """Carry out the selected action. Raises what is an error of the usage after all."""
    if options.has("validate-regex"):
        say(regex_verdict(options.text("validate-regex") or ""))
        return
    try:
        asyncio.run(_execute(options))
    except (BadTopicArgument, NothingCommitted):
        raise
    except (ExecutionFailure, OperationRefused, OptionProblem) as problem:
        say(f"\nError: Executing consumer group command failed due to {problem}\n")
    except (KafkaError, ClientError) as problem:
        say(f"\nError: Executing consumer group command failed due to {java.described(problem)}\n")


def regex_verdict(pattern: str) -> str:
    """What --validate-regex says of a pattern."""
    from groupkeeper.protocol.re2_syntax import BadPattern, check_pattern

    try:
        check_pattern(pattern)
    except BadPattern as problem:
        return f"The regular expression `{pattern}` is invalid: {problem}.\n"
    return f"The regular expression `{pattern}` is valid.\n"


async def _execute(options: Options) -> None:
    admin = open_admin(options)
    try:
        tool = ConsumerGroups(admin, options)
        if options.has("list"):
            await tool.list()
        elif options.has("describe"):
            await tool.describe()
        elif options.has("delete"):
            await tool.delete()
        elif options.has("reset-offsets"):
            await tool.reset_offsets()
        else:
            await tool.delete_offsets()
    finally:
        await admin.close()


class ConsumerGroups:
    """The actions. Each prints its result, or raises ExecutionFailure or UsageProblem with nothing printed."""

    def __init__(self, admin: Admin, options: Options) -> None:
        self.admin = admin
        self.options = options
        self.values = converted(options)
        self.timeout_ms = self.values.timeout_ms

    @cached_property
    def recorder(self) -> Recorder | None:
        """Journals what the tool changes."""
        from groupkeeper.cli.framework.journalling import drop_in_recorder

        return drop_in_recorder("kafka-consumer-groups")

    async def list(self) -> None:
        """--list, with or without --state and --type."""
        types = self.options.has("type")
        states = self.options.has("state")
        if not types and not states:
            say("".join(f"{group_id}\n" for group_id in await self.all_group_ids()))
            return
        wanted_types = types_of(self.options.text("type") or "")
        wanted_states = states_of(self.options.text("state") or "", STATES)
        with failing(java.described):
            listings = await self.admin.list_groups(
                states=wanted_states,
                types=wanted_types,
                protocol_types=("", "consumer"),
                timeout_ms=self.timeout_ms,
            )
            groups = list(listings.all().values())
        say(groups_text.listing(groups, types=types, states=states))

    async def all_group_ids(self) -> Sequence[str]:
        """The ids of all consumer groups."""
        with failing(java.wrapped):
            listings = await self.admin.list_groups(
                types=TYPES, protocol_types=("", "consumer"), timeout_ms=self.timeout_ms
            )
            return list(listings.all())

    async def group_ids(self) -> Sequence[str]:
        """The groups to act on."""
        return await self.all_group_ids() if self.options.has("all-groups") else self.options.texts("group")

    async def describe_groups(self, group_ids: Sequence[str]) -> Batch[str, ConsumerGroupDescription]:
        """The groups' descriptions; when no broker could be asked, that failure for each of them."""
        from groupkeeper.operations.describe import describe_groups

        described = await describe_groups(self.admin, group_ids, timeout_ms=self.timeout_ms)
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
                (remark, error + groups_text.members(group, verbose=verbose)) for group, remark, error in judged(groups)
            )
        else:
            complain_and_say(
                (remark, error or groups_text.state(group, verbose=verbose)) for group, remark, error in judged(groups)
            )

    async def describe_offsets(self, group_ids: Sequence[str], *, verbose: bool) -> None:
        """The tables of offsets. That a group cannot be described comes before what is wrong with any offsets."""
        from groupkeeper.operations.describe import describe_offsets
        from groupkeeper.protocol.errors import LeaderNotAvailable

        described: Batch[str, ConsumerGroupDescription] = Batch()
        failed: dict[str, Failure] = {}
        tables: dict[str, str] = {}
        with failing(java.wrapped):
            async for part in describe_offsets(self.admin, group_ids, timeout_ms=self.timeout_ms):
                described.done.update(part.groups.done)
                described.failed.update(part.groups.failed)
                failed |= part.offsets.failed
                for group_id, offsets in part.offsets.done.items():
                    for failure in offsets.places.failures:
                        if not isinstance(failure, LeaderNotAvailable):
                            failed.setdefault(group_id, failure)
                    tables[group_id] = groups_text.offsets(offsets, verbose=verbose)
        read_again(described)
        groups = in_order(described, group_ids)
        with failing(java.wrapped):
            raise_first(failed, [group.group_id for group in groups])
        complain_and_say((remark, error or tables[group.group_id]) for group, remark, error in judged(groups))

    async def delete(self) -> None:
        """--delete."""
        from groupkeeper.operations.delete import delete_any_groups

        group_ids = await self.group_ids()
        deleting = delete_any_groups(self.admin, group_ids, self.recorder, timeout_ms=self.timeout_ms)
        outcome = await answers(deleting, group_ids)
        in_order = java.hash_order(outcome.failed, java.string_hash)
        failed = {group_id: java.described(outcome.failed[group_id]) for group_id in in_order}
        say(groups_text.deleted_groups(java.hash_order(outcome.done, java.string_hash), failed))

    async def delete_offsets(self) -> None:
        """--delete-offsets: a verdict on the whole, then a table of the partitions."""
        from groupkeeper.operations.delete import delete_offsets

        group_id = self.options.text("group") or ""
        topics = self.options.texts("topic")
        deleted = await delete_offsets(self.admin, group_id, topics, self.recorder, timeout_ms=self.timeout_ms)
        say(groups_text.deletion_verdict(group_id, deleted.failure))
        say(groups_text.deleted_offsets(groups_text.deletion_outcomes(deleted)))

    async def reset_offsets(self) -> None:
        """--reset-offsets: the groups one after the other; a failure doesn't undo those done before."""
        from groupkeeper.cli.dropin.consumer_groups_reset import GroupReset

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
    """Raise the failure that the official tool comes upon first, when there is one."""
    if failed:
        raise next(failed[group_id] for group_id in java.group_order(group_ids) if group_id in failed)


def in_order(
    described: Batch[str, ConsumerGroupDescription], group_ids: Sequence[str]
) -> Sequence[ConsumerGroupDescription]:
    """The groups as they are printed. Raises ExecutionFailure when one could not be described."""
    with failing(java.described):
        raise_first(described.failed, group_ids)
    return sorted(described.done.values(), key=lambda group: java.sort_key(group.group_id))


def judged(
    groups: Iterable[ConsumerGroupDescription],
) -> Iterator[tuple[ConsumerGroupDescription, str, str]]:
    """Groups with the text about their state for standard error, or for standard output if they are dead.

    Raises ExecutionFailure for an unknown state.
    """
    for group in groups:
        if group.group_state is GroupState.DEAD:
            yield group, "", f"\nError: Consumer group '{group.group_id}' does not exist.\n"
        elif group.group_state not in STATES:
            raise ExecutionFailure(f"Expected a valid consumer group state, but found '{group.group_state}'.")
        else:
            yield group, groups_text.remark(group.group_id, group.group_state), ""


def types_of(text: str) -> Sequence[GroupType]:
    """The types of a list separated by commas. Raises UsageProblem."""
    types = [GroupType.parse(java.trim(part)) for part in java.split(text, ",")] if text else []
    if not set(types) <= set(TYPES):
        raise UsageProblem(f"Invalid types list '{text}'. Valid types are: {', '.join(map(str, TYPES))}")
    return types
