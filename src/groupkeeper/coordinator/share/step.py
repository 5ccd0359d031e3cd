"""One operation on a share group while it is being computed: its records, and the group after them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from groupkeeper.coordinator.assignors import simple
from groupkeeper.coordinator.assignors.spec import MemberSpec, TargetAssignment
from groupkeeper.coordinator.epochs.step import EpochStep
from groupkeeper.coordinator.kernel.result import Meter
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import ShareSession
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.coordinator.share import records
from groupkeeper.coordinator.share.group import (
    PartitionStates,
    ShareGroup,
    ShareMember,
    ShareSoft,
    TopicPartitions,
    add_partitions,
    partitions_in,
)
from groupkeeper.coordinator.share.replay import LOG
from groupkeeper.coordinator.share.work import InitializeShares
from groupkeeper.coordinator.share_state.state import UNKNOWN_OFFSET


class ShareStep(EpochStep[ShareGroup]):
    log = LOG
    records: ClassVar = records
    session = ShareSession
    rebalance = Meter.SHARE_GROUP_REBALANCE
    soft: ShareSoft

    @property
    def interval_ms(self) -> int:
        return self.settings.group_share_assignment_interval_ms

    @classmethod
    def session_ms(cls, member: ShareMember, settings: Settings) -> int:
        return settings.group_share_session_timeout_ms

    # --- most heartbeats: nothing to do

    @property
    def is_settled(self) -> bool:
        """Whether an earlier heartbeat found nothing to do, and nothing has changed since."""
        return self.group.soft.settled == self._situation()

    def settle(self) -> None:
        """If there was nothing to do, lets the next heartbeat skip the checks."""
        group = self.group
        if not self._records and not group.has.initializing and not self.is_behind:
            self.soft = replace(self.soft, settled=self._situation())

    def _situation(self) -> tuple[int, int, PartitionStates | None]:
        return self.topics.version, self.group.group_epoch, self.group.partitions

    # --- epochs

    def refresh(self, *, must_bump: bool) -> bool:
        """Raises the group epoch if members, topics or the assignable partitions changed; that is a rebalance. Returns
        whether it did.
        """
        group = self.group
        if not self.is_behind:
            must_bump |= self._is_behind_initialized()
        if not must_bump and self.soft.checked_version == self.topics.version:
            return False
        self.soft = replace(self.soft, checked_version=self.topics.version)
        if not must_bump and self.topics.metadata_hash(group.subscriber_counts) == group.metadata_hash:
            return False
        self.bump()
        self.count_rebalance()
        return True

    def _is_behind_initialized(self) -> bool:
        """Whether no target has some subscribed partition, or a target has a partition that no member subscribes to."""
        targeted: dict[bytes, set[int]] = {}
        for target in self.group.targets.values():
            for topic_id, partitions in target.items():
                targeted.setdefault(topic_id, set()).update(partitions)
        subscribed = self.topics.ids_of(self.group.subscriber_counts)
        return any(
            topic_id in subscribed and targeted.get(topic_id, set()) != set(partitions)
            for topic_id, (_, partitions) in self.group.has.initialized.items()
        )

    # --- target

    def update_target(self) -> None:
        """Computes a new target assignment when one is due."""
        if self.is_behind and not self.is_too_early:
            self.write_targets(compute_targets(self.group, self.topics))

    # --- members

    def reconcile(self, member_id: str, *, has_bumped: bool) -> ShareMember:
        """Gives a member its target at once, without topics that are deleted or that it does not subscribe to.
        `has_bumped`: topics or subscriptions changed, so such topics are removed from the member before it gets its
        next target.
        """
        group = self.group
        member = group.members[member_id]
        is_current = member.member_epoch == group.assignment_epoch
        if is_current and not has_bumped:
            return member
        subscribed = self.topics.ids_of(member.subscribed_topic_names)
        target = group.targets.get(member_id, {})
        updated = replace(
            member,
            assigned={topic_id: some for topic_id, some in target.items() if topic_id in subscribed},
            member_epoch=group.assignment_epoch,
            previous_member_epoch=member.previous_member_epoch if is_current else member.member_epoch,
        )
        if updated != member:
            self.write(records.assignment_record(group.group_id, updated))
        return updated

    # --- share-partitions

    def initialize_subscribed(self) -> None:
        """Requests the initialization of missing share-partitions of subscribed topics."""
        group = self.group
        has = group.has
        missing: dict[bytes, dict[int, int]] = {}
        for name in group.subscriber_counts:
            topic = self.topics.topics.get(name)
            if topic is None:
                continue
            known = partitions_in(has.initialized, topic.topic_id)
            if not self._is_overdue(topic.topic_id):
                known |= partitions_in(has.initializing, topic.topic_id)
            new = frozenset(range(topic.partition_count)) - known
            if new:
                missing[topic.topic_id] = dict.fromkeys(sorted(new), UNKNOWN_OFFSET)
        if missing:
            self.initialize(missing)

    def _is_overdue(self, topic_id: bytes) -> bool:
        since_ms = self.soft.initializing_since.get(topic_id)
        return since_ms is None or self.now_ms - since_ms >= self.settings.group_share_initialize_retry_interval_ms

    def initialize(self, start_offsets: Mapping[bytes, Mapping[int, int]]) -> InitializeShares:
        """Marks share-partitions as initializing and requests their initialization; unmarks their topics as
        deleting.
        """
        group = self.group
        has = group.has
        names = self.topics.name_by_id
        added = {topic_id: TopicPartitions(names[topic_id], frozenset(own)) for topic_id, own in start_offsets.items()}
        deleting = {topic_id: name for topic_id, name in has.deleting.items() if topic_id not in added}
        initializing = add_partitions(has.initializing, added)
        self.write(records.partitions_record(group.group_id, PartitionStates(initializing, has.initialized, deleting)))
        since = {**self.soft.initializing_since, **dict.fromkeys(added, self.now_ms)}
        self.soft = replace(self.soft, initializing_since=since)
        work = InitializeShares(group.group_id, group.group_epoch, start_offsets)
        self.ask(work)
        return work


def compute_targets(group: ShareGroup, topics: TopicsImage) -> dict[str, TargetAssignment]:
    """Every member's target, computed from the initialized share-partitions."""
    members = {
        member_id: MemberSpec(topics.ids_of(member.subscribed_topic_names), group.targets.get(member_id, {}))
        for member_id, member in group.members.items()
    }
    subscribed = topics.ids_of(group.subscriber_counts)
    assignable = {
        topic_id: partitions for topic_id, (_, partitions) in group.has.initialized.items() if topic_id in subscribed
    }
    return simple.assign(members, assignable, is_homogeneous=group.is_homogeneous)
