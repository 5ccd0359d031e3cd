"""Changes of share groups' start offsets: journalled, and taken back by the same plans as those of consumer groups."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import (
    Batch,
    ConsumerGroupDescription,
    Failure,
    GroupType,
    MemberDescription,
    OffsetAndMetadata,
    SharePartitionOffset,
    TopicPartition,
)
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.errors import OperationRefused
from groupkeeper.operations.plans.changes import Recorded
from groupkeeper.operations.plans.journal import ChangeJournal
from groupkeeper.operations.plans.model import Kind
from groupkeeper.operations.plans.recorder import BegunPart, Outcome, Recorder, begin_deletion, committed_now, end_part
from groupkeeper.protocol.errors import KafkaError

SHARE_KINDS = frozenset([Kind.SHARE_RESET, Kind.SHARE_CLONE, Kind.SHARE_DELETE, Kind.SHARE_DELETE_GROUPS])

T = TypeVar("T")
Offsets = Batch[TopicPartition, OffsetAndMetadata | None]


def is_of_share_groups(journal: ChangeJournal, recorded: Recorded) -> bool:
    """Whether a change, or the one that it undoes, is one of share groups. Raises JournalUnreadable."""
    head = recorded.head
    while head.undoes is not None:
        earlier = journal.load(head.undoes)
        if earlier is None:
            break
        head = earlier.head
    return head.kind in SHARE_KINDS


class OnlyWholeTopics(OperationRefused):
    """Brokers delete a share group's offsets by topics, and some of this topic's offsets are to stay."""


class ShareAdmin(Admin):
    """An Admin that presents share groups as consumer groups, and their start offsets as committed offsets."""

    def __init__(self, admin: Admin) -> None:
        self._cluster = admin._cluster

    async def describe_consumer_groups(
        self, group_ids: Iterable[str], *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> Batch[str, ConsumerGroupDescription]:
        described = await self.describe_share_groups(group_ids, timeout_ms=timeout_ms)
        groups = {
            key: ConsumerGroupDescription(
                key,
                GroupType.SHARE,
                group.group_state,
                False,
                group.partition_assignor,
                tuple(MemberDescription(one.member_id, None, one.client_id, one.host) for one in group.members),
                group.coordinator,
            )
            for key, group in described.done.items()
        }
        return Batch(groups, described.failed)

    async def list_consumer_group_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> Batch[str, Offsets]:
        listed = await self.list_share_group_offsets(groups, timeout_ms=timeout_ms)
        offsets = {
            key: Batch({tp: _as_commit(one) for tp, one in batch.done.items()}, batch.failed)
            for key, batch in listed.done.items()
        }
        return Batch(offsets, listed.failed)

    async def alter_offsets_of_groups(
        self,
        offsets: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]],
        *,
        tell: Callable[[], None] | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[str, Outcome]:
        starts = {key: {tp: commit.offset for tp, commit in some.items()} for key, some in offsets.items()}
        return await _each(starts, partial(self.alter_share_group_offsets, timeout_ms=timeout_ms), tell)

    async def delete_offsets_of_groups(
        self,
        partitions: Mapping[str, Iterable[TopicPartition]],
        *,
        tell: Callable[[], None] | None = None,
        timeout_ms: int | None = None,
    ) -> Batch[str, Outcome]:
        wanted = {key: list(some) for key, some in partitions.items()}
        return await _each(wanted, partial(self._forget, timeout_ms=timeout_ms), tell)

    async def _forget(self, group_id: str, tps: list[TopicPartition], timeout_ms: int | None) -> Outcome:
        known = (await self.list_share_group_offsets({group_id: None}, timeout_ms=timeout_ms)).result(group_id).done
        kept = {tp.topic for tp, one in known.items() if one is not None and tp not in tps}
        failure = OnlyWholeTopics(
            "brokers delete a share group's offsets only by whole topics, and this topic has partitions to keep"
        )
        failed: dict[TopicPartition, Failure] = {tp: failure for tp in tps if tp.topic in kept}
        topics = dict.fromkeys(tp.topic for tp in tps if tp.topic not in kept)
        if topics:
            batch = await self.delete_share_group_offsets(group_id, topics, timeout_ms=timeout_ms)
            failed |= {tp: batch.failed[tp.topic] for tp in tps if tp.topic in batch.failed}
        return Batch({tp: None for tp in tps if tp not in failed}, failed)


async def _each(
    groups: Mapping[str, T], act: Callable[[str, T], Awaitable[Outcome]], tell: Callable[[], None] | None
) -> Batch[str, Outcome]:
    """Changes one group after the other, as requests about share groups are of one each."""
    outcome: Batch[str, Outcome] = Batch()
    for group_id, wanted in groups.items():
        try:
            outcome.done[group_id] = await act(group_id, wanted)
        except (KafkaError, ClientError) as failure:
            outcome.failed[group_id] = failure
        if tell is not None:
            tell()
    return outcome


def _as_commit(one: SharePartitionOffset | None) -> OffsetAndMetadata | None:
    return None if one is None else OffsetAndMetadata(one.start_offset)


class ShareDeletion:
    """Journals one deletion of share groups, or of their offsets, by a tool that sends it itself.

    `recorder` None: nothing is written.
    """

    def __init__(self, admin: Admin, recorder: Recorder | None, kind: Kind) -> None:
        self._admin = admin
        self._recorder = recorder
        self._kind = kind
        self._begun: BegunPart | None = None
        self._gone: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}

    async def begin(self, group_ids: Iterable[str], topics: Iterable[str] | None = None) -> None:
        """Journals a coming deletion of offsets: all of the groups, or those of `topics`. Does nothing if nothing
        changes, or the offsets may not be read.
        """
        if self._recorder is None:
            return
        chosen = None if topics is None else frozenset(topics)
        found = await committed_now(ShareAdmin(self._admin), dict.fromkeys(group_ids))
        for group_id, offsets in found.items():
            gone = {tp: one for tp, one in offsets.items() if one and (chosen is None or tp.topic in chosen)}
            if gone:
                self._gone[group_id] = gone
        self._begun = await begin_deletion(self._admin, self._recorder, self._gone, self._kind)

    async def end(self, failed: Mapping[str, Failure], topics: Mapping[str, Failure] = {}) -> None:
        """Journals the outcome: groups that failed as a whole, and topics that failed."""
        outcome: Batch[str, Outcome] = Batch()
        for group_id, some in self._gone.items():
            if group_id in failed:
                outcome.failed[group_id] = failed[group_id]
                continue
            lost = {tp: why for tp in some if (why := topics.get(tp.topic)) is not None}
            outcome.done[group_id] = Batch({tp: None for tp in some if tp not in lost}, lost)
        await end_part(self._recorder, self._begun, outcome)
