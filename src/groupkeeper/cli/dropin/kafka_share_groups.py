"""kafka-share-groups, equal to the official tool of Kafka 4.4.0 in output, exit status and effect.

Its defects are kept: exit status 0 on failure, one failure hides all other groups. `groupkeeper groups` is the better
form.
"""

from __future__ import annotations

from collections.abc import Sequence

from groupkeeper.cli.dropin import groups_text, share_groups_text
from groupkeeper.cli.dropin.drop_in import Refusal, failing
from groupkeeper.cli.dropin.group_tool import GroupTool, group_tool
from groupkeeper.cli.dropin.share_groups_options import TABLE, check
from groupkeeper.cli.framework.output import complain, say
from groupkeeper.cli.java import values as java
from groupkeeper.cli.java.releases import release
from groupkeeper.client.admin.types import Batch, Failure, GroupState, GroupType, ShareGroupDescription
from groupkeeper.client.batch import or_failed
from groupkeeper.operations.plans.model import Kind
from groupkeeper.operations.plans.reset import INACTIVE
from groupkeeper.operations.share_changes import ShareAdmin, ShareDeletion
from groupkeeper.protocol import errors


class ShareGroups(GroupTool):
    """The actions of kafka-share-groups."""

    table = TABLE
    kind = "share"
    types = (GroupType.SHARE,)
    states = (GroupState.EMPTY, GroupState.STABLE, GroupState.DEAD)

    def _change(self, kind: Kind) -> ShareDeletion:
        """A journalled deletion; failures of the journal are not printed."""
        return ShareDeletion(self.admin, self.recorder, kind)

    def text_of(self, failure: Exception) -> str:
        """The failure as this release of the official tool prints it."""
        return java.message(failure) if release().bare_questions else super().text_of(failure)

    async def describe(self) -> None:
        """--describe: nothing is printed unless every group can be described."""
        group_ids = await self.group_ids()
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
        return await or_failed(self.admin.describe_share_groups(group_ids), group_ids)

    async def _describe_offsets(self, group_ids: Sequence[str], *, verbose: bool) -> None:
        """The tables of offsets. Partitions that the broker refuses are left out, as the official client does."""
        with failing(self.text_of):
            batch = await self.admin.list_share_group_offsets(dict.fromkeys(group_ids))
            for group_id in java.text_order(group_ids):
                batch.result(group_id)
        for group_id in group_ids:
            say(share_groups_text.offsets(group_id, batch.done[group_id].done, verbose=verbose))

    async def delete(self) -> None:
        """--delete: groups that aren't share groups, or aren't empty, are not even tried."""
        wanted, failed = await self.sorted_out("is not a share group", release().unknown_share_group)
        change = self._change(Kind.SHARE_DELETE_GROUPS)
        await change.begin(wanted)
        outcome: Batch[str, None] = Batch()
        if wanted:
            outcome = await or_failed(self.admin.delete_share_groups(wanted), wanted)
        await change.end(outcome.failed)
        failed |= {group_id: java.described(why) for group_id, why in outcome.failed.items()}
        in_order = {group_id: failed[group_id] for group_id in java.group_order(failed)}
        say(groups_text.deleted_groups(java.text_order(outcome.done), in_order, kind="share"))

    async def delete_offsets(self) -> None:
        """--delete-offsets: what concerns the whole group, then a table of the topics."""
        group_id = self.options.text("group") or ""
        topics = java.text_order(self.options.texts("topic"))
        change = self._change(Kind.SHARE_DELETE)
        await change.begin([group_id], topics)
        deleting = self.admin.delete_share_group_offsets(group_id, topics)
        failures = (await or_failed(deleting, topics)).failed
        await change.end({}, failures)
        say(_deletion_text(next((failures[topic] for topic in topics if topic in failures), None)))
        outcomes = {
            topic: java.lookup_message(failures[topic], "deleteShareGroupOffsets") if topic in failures else None
            for topic in topics
        }
        say(share_groups_text.deleted_offsets(outcomes))

    async def reset_offsets(self) -> None:
        """--reset-offsets."""
        from groupkeeper.cli.dropin.group_resets import ShareReset

        group_id = self.options.text("group") or ""
        described = await self._describe([group_id])
        failure = described.failed.get(group_id)
        if failure is not None and not isinstance(failure, errors.GroupIdNotFound):
            raise Refusal(java.lookup_message(failure, "describeShareGroups"))
        if failure is None and described.done[group_id].group_state not in INACTIVE:
            raise Refusal(f"Share group '{group_id}' is not empty.")
        reset = ShareReset(ShareAdmin(self.admin), self.options, self.values, self.recorder)
        offsets = await reset.reset(group_id)
        plans = {group_id: offsets} if offsets or not release().bare_questions else {}
        say(reset.csv(plans) if self.options.has("export") else groups_text.new_offsets(plans))


def _tell_state(group: ShareGroupDescription) -> bool:
    """Prints a note about a group's state; returns whether the group exists."""
    if group.group_state is GroupState.DEAD:
        say(share_groups_text.missing(group.group_id))
        return False
    complain(share_groups_text.note(group))
    return True


def _deletion_text(failure: Failure | None) -> str:
    """The first line of --delete-offsets; "": failures by topic are only in the table."""
    if failure is None or isinstance(failure, errors.TopicAuthorizationFailed | errors.UnknownTopicOrPartition):
        return ""
    if isinstance(
        failure, errors.InvalidGroupId | errors.GroupIdNotFound | errors.GroupAuthorizationFailed | errors.NonEmptyGroup
    ):
        return f"\nError: {java.message(failure)}\n"
    return f"\nError: Encounter some unknown error: {java.described(failure)}\n"


main = group_tool(ShareGroups, check)
