"""kafka-share-groups, equal to the official tool of Kafka 4.4.0 in output, exit status and effect.

Its defects are kept: exit status 0 on failure, one failure hides all other groups. ``groupkeeper groups`` is the better
form.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from groupkeeper.cli.dropin import groups_text, share_groups_text
from groupkeeper.cli.dropin.bootstrap import open_admin
from groupkeeper.cli.dropin.consumer_groups_options import Converted
from groupkeeper.cli.dropin.drop_in import (
    ExecutionFailure,
    answers,
    failing,
    read_options,
    refuse_usage,
    run_tool,
    states_of,
    undeletable,
)
from groupkeeper.cli.dropin.options import OptionProblem, Options, UsageProblem
from groupkeeper.cli.dropin.share_groups_options import TABLE, check
from groupkeeper.cli.framework.journalling import drop_in_recorder
from groupkeeper.cli.framework.output import complain, say
from groupkeeper.cli.java import values as java
from groupkeeper.cli.java.releases import release
from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    Failure,
    GroupListing,
    GroupState,
    GroupType,
    ShareGroupDescription,
)
from groupkeeper.operations.errors import BadTopicArgument, OperationRefused
from groupkeeper.operations.plans.model import Kind
from groupkeeper.operations.reset import INACTIVE
from groupkeeper.operations.share_changes import ShareAdmin, ShareChange
from groupkeeper.protocol.errors import (
    GroupAuthorizationFailed,
    GroupIdNotFound,
    InvalidGroupId,
    NonEmptyGroup,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)

STATES = (GroupState.EMPTY, GroupState.STABLE, GroupState.DEAD)


class Refusal(Exception):
    """The command ends with exit status 1 and this text on standard error."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; the result is the exit status."""
    return run_tool(run, arguments)


def run(arguments: Sequence[str]) -> int:
    """Read the arguments, check them and execute. Errors of the parser come without the help, other ones with it."""
    options = read_options(TABLE, arguments, check)
    if isinstance(options, int):
        return options
    try:
        asyncio.run(_execute(options))
    except (UsageProblem, BadTopicArgument) as problem:
        return refuse_usage(TABLE, str(problem))
    except Refusal as problem:
        complain(f"{problem}\n")
        return 1
    except (ExecutionFailure, OperationRefused, OptionProblem) as problem:
        say(f"\nError: Executing share group command failed due to {problem}\n")
    return 0


async def _execute(options: Options) -> None:
    admin = open_admin(options)
    try:
        tool = ShareGroups(admin, options)
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


class ShareGroups:
    """The actions. Each prints its result, or raises ExecutionFailure, Refusal or UsageProblem."""

    def __init__(self, admin: Admin, options: Options) -> None:
        self.admin = admin
        self.options = options
        # Converted before any action, in this order.
        to_offsets = options.numbers("to-offset")
        self.timeout_ms = max(java.to_int(options.number("timeout") or 0), 0)
        self.values = Converted(to_offsets, None, None, self.timeout_ms)

    def _change(self, kind: Kind) -> ShareChange:
        """A change that is journalled, as far as that can be done without a word."""
        return ShareChange(self.admin, drop_in_recorder("kafka-share-groups"), kind, self.timeout_ms)

    async def list(self) -> None:
        """--list, with or without --state."""
        if not self.options.has("state"):
            with failing(_text_of):
                groups = await self._listings()
            say("".join(f"{group.group_id}\n" for group in groups))
            return
        states = states_of(self.options.text("state") or "", STATES)
        with failing(java.described):
            groups = await self._listings(states)
        say(share_groups_text.listing(groups))

    async def _listings(self, states: Sequence[GroupState] = ()) -> Sequence[GroupListing]:
        listings = await self.admin.list_groups(states=states, types=(GroupType.SHARE,), timeout_ms=self.timeout_ms)
        return list(listings.all().values())

    async def describe(self) -> None:
        """--describe: nothing is printed unless every group can be described."""
        group_ids: Sequence[str] = self.options.texts("group")
        if self.options.has("all-groups"):
            with failing(_text_of):
                group_ids = [group.group_id for group in await self._listings()]
        described = await self._describe(group_ids)
        with failing(java.described):
            for group_id in java.group_order(group_ids):
                described.result(group_id)
        groups = sorted(described.done.values(), key=lambda group: java.sort_key(group.group_id))
        verbose = self.options.has("verbose")
        if self.options.has("members"):
            for group in groups:
                if _tell_state(group) and group.members:
                    say(share_groups_text.members(group, verbose=verbose))
        elif self.options.has("state"):
            for group in groups:
                _tell_state(group)
                say(share_groups_text.state(group, verbose=verbose))
        else:
            await self._describe_offsets([group.group_id for group in groups], verbose=verbose)

    async def _describe(self, group_ids: Sequence[str]) -> Batch[str, ShareGroupDescription]:
        return await answers(self.admin.describe_share_groups(group_ids, timeout_ms=self.timeout_ms), group_ids)

    async def _describe_offsets(self, group_ids: Sequence[str], *, verbose: bool) -> None:
        """The tables of offsets. Partitions that the broker refuses are left out, as the official client does."""
        with failing(_text_of):
            batch = await self.admin.list_share_group_offsets(dict.fromkeys(group_ids), timeout_ms=self.timeout_ms)
            for group_id in java.hash_order(group_ids, java.string_hash):
                batch.result(group_id)
        for group_id in group_ids:
            say(share_groups_text.offsets(group_id, batch.done[group_id].done, verbose=verbose))

    async def delete(self) -> None:
        """--delete: groups that aren't share groups, or aren't empty, are not even tried."""
        with failing(_text_of):
            state_by_group = {group.group_id: group.group_state for group in await self._listings()}
        every = self.options.has("all-groups")
        group_ids = list(dict.fromkeys(state_by_group if every else self.options.texts("group")))
        failed: dict[str, str] = {}
        for group_id in group_ids:
            why = undeletable(group_id, state_by_group, "Share", "is not a share group", release().unknown_share_group)
            if why is not None:
                failed[group_id] = why
        wanted = [group_id for group_id in group_ids if group_id not in failed]
        change = self._change(Kind.SHARE_DELETE_GROUPS)
        await change.begin(wanted)
        outcome: Batch[str, None] = Batch()
        if wanted:
            outcome = await answers(self.admin.delete_share_groups(wanted, timeout_ms=self.timeout_ms), wanted)
        change.end(outcome.failed)
        failed |= {group_id: java.described(why) for group_id, why in outcome.failed.items()}
        in_order = {group_id: failed[group_id] for group_id in java.group_order(failed)}
        say(groups_text.deleted_groups(java.hash_order(outcome.done, java.string_hash), in_order, kind="share"))

    async def delete_offsets(self) -> None:
        """--delete-offsets: what concerns the whole group, then a table of the topics."""
        group_id = self.options.text("group") or ""
        topics = java.hash_order(self.options.texts("topic"), java.string_hash)
        change = self._change(Kind.SHARE_DELETE)
        await change.begin([group_id], topics)
        deleting = self.admin.delete_share_group_offsets(group_id, topics, timeout_ms=self.timeout_ms)
        failures = (await answers(deleting, topics)).failed
        change.end({}, failures)
        say(_verdict(next((failures[topic] for topic in topics if topic in failures), None)))
        outcomes = {
            topic: java.lookup_message(failures[topic], "deleteShareGroupOffsets") if topic in failures else None
            for topic in topics
        }
        say(share_groups_text.deleted_offsets(outcomes))

    async def reset_offsets(self) -> None:
        """--reset-offsets."""
        from groupkeeper.cli.dropin.share_groups_reset import ShareReset

        group_id = self.options.text("group") or ""
        described = await self._describe([group_id])
        failure = described.failed.get(group_id)
        if failure is not None and not isinstance(failure, GroupIdNotFound):
            raise Refusal(java.lookup_message(failure, "describeShareGroups"))
        if failure is None and described.done[group_id].group_state not in INACTIVE:
            raise Refusal(f"Share group '{group_id}' is not empty.")
        reset = ShareReset(ShareAdmin(self.admin), self.options, self.values, drop_in_recorder("kafka-share-groups"))
        offsets = await reset.reset(group_id)
        plans = {group_id: offsets} if offsets or not release().bare_questions else {}
        say(reset.csv(plans) if self.options.has("export") else groups_text.new_offsets(plans))


def _text_of(failure: Exception) -> str:
    """What is said of a question that failed."""
    return java.message(failure) if release().bare_questions else java.wrapped(failure)


def _tell_state(group: ShareGroupDescription) -> bool:
    """Say what is noteworthy about a group's state; whether it exists."""
    if group.group_state is GroupState.DEAD:
        say(share_groups_text.missing(group.group_id))
        return False
    complain(share_groups_text.remark(group))
    return True


def _verdict(failure: Failure | None) -> str:
    """The first words of --delete-offsets, "" for none: what fails by topic is in the table only."""
    if failure is None or isinstance(failure, TopicAuthorizationFailed | UnknownTopicOrPartition):
        return ""
    if isinstance(failure, InvalidGroupId | GroupIdNotFound | GroupAuthorizationFailed | NonEmptyGroup):
        return f"\nError: {java.message(failure)}\n"
    return f"\nError: Encounter some unknown error: {java.described(failure)}\n"
