"""One operation on a consumer group while it is being computed: its records, and the group after them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from groupkeeper.coordinator.assignors import ASSIGNORS
from groupkeeper.coordinator.assignors.spec import GroupSpec, MemberSpec, TargetAssignment
from groupkeeper.coordinator.consumer import records as consumer_records
from groupkeeper.coordinator.consumer.group import UNREVOKED_PARTITIONS, ConsumerGroup, ConsumerMember, ConsumerSoft
from groupkeeper.coordinator.consumer.reconcile import Goal, ReportedPartitions, reconcile
from groupkeeper.coordinator.consumer.replay import LOG
from groupkeeper.coordinator.epochs.step import EpochStep
from groupkeeper.coordinator.kernel.result import Disarm, Meter, Record
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import ClassicRejoin, ClassicResync, ConsumerSession, Revocation
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.protocol.errors import UnknownServerError


class Step(EpochStep[ConsumerGroup]):
    log = LOG
    records: ClassVar = consumer_records
    session = ConsumerSession
    revocation = Revocation
    revoking = UNREVOKED_PARTITIONS
    rebalance = Meter.CONSUMER_GROUP_REBALANCE
    soft: ConsumerSoft

    @property
    def interval_ms(self) -> int:
        return self.settings.group_consumer_assignment_interval_ms

    @classmethod
    def session_ms(cls, member: ConsumerMember, settings: Settings) -> int:
        """The session timeout of a member; a member of the classic protocol has its own."""
        if member.classic is not None:
            return member.classic.session_timeout_ms
        return settings.group_consumer_session_timeout_ms

    @classmethod
    def is_revoking(cls, member: ConsumerMember) -> bool:
        """A member of the classic protocol needs no revocation timer: it revokes by rejoining."""
        return super().is_revoking(member) and member.classic is None

    # --- epochs

    def is_outdated(self) -> bool:
        """Whether the subscribed topics have changed since the group epoch was last raised."""
        group = self.group
        if self.soft.checked_version == self.topics.version:
            return False
        return self.topics.metadata_hash(group.subscribed_topics()) != group.metadata_hash

    def refresh(self, *, must_bump: bool) -> None:
        """Raises the group epoch if the subscribed topics changed, or if `must_bump`; this counts as a rebalance."""
        group = self.group
        if not must_bump and self.soft.checked_version == self.topics.version:
            return
        if must_bump or self.is_outdated():
            self.bump()
            self.count_rebalance()
        self.soft = replace(self.soft, checked_version=self.topics.version)
        if group.has_partition_metadata:
            self.write(consumer_records.partition_metadata_tombstone(group.group_id))

    # --- target

    def update_target(self) -> None:
        """Computes a new target assignment when one is due."""
        if self.is_behind and not self.is_too_early:
            self.write_targets(compute_targets(self.group, self.settings, self.topics))

    # --- members

    def reconcile(
        self, member_id: str, *, has_changed_subscription: bool, reported: ReportedPartitions | None
    ) -> ConsumerMember:
        """Moves a member towards its target as far as other owners allow now, and returns it."""
        group = self.group
        member = group.members[member_id]
        if not has_changed_subscription and member.is_reconciled_to(group.assignment_epoch):
            return member
        goal = Goal(
            group.assignment_epoch,
            group.targets.get(member_id, {}),
            self.topics.ids_of(group.topics_of(member)),
            has_changed_subscription,
            group.owner_by_partition,
            reported,
        )
        updated = reconcile(member, goal)
        if updated == member:
            return member
        # The group need not be copied for this last change.
        self._records.append(consumer_records.assignment_record(group.group_id, updated))
        if updated.classic is None:
            self.follow_revocation(updated)
        return updated

    def bring_on(
        self, member_id: str, *, must_bump: bool, has_changed_subscription: bool, reported: ReportedPartitions | None
    ) -> ConsumerMember:
        """Continues after a member's request: updates group epoch and target, and moves the member towards its
        target.
        """
        self.refresh(must_bump=must_bump)
        self.update_target()
        return self.reconcile(member_id, has_changed_subscription=has_changed_subscription, reported=reported)

    def unused(self) -> Iterator[Record]:
        for regex in self.logged.regex_counts:  # also those that are not resolved yet: a lookup may be running
            if regex not in self.group.regex_counts:
                yield consumer_records.regex_tombstone(self.group.group_id, regex)

    def disarm_all(self, member_id: str) -> None:
        super().disarm_all(member_id)
        self.arm(*(Disarm(timer(self.group.group_id, member_id)) for timer in (ClassicRejoin, ClassicResync)))


def compute_targets(group: ConsumerGroup, settings: Settings, topics: TopicsImage) -> dict[str, TargetAssignment]:
    """Every member's target, computed by the assignor that most members prefer. Raises `UnknownServerError` when the
    log has members that prefer an assignor that doesn't exist here.
    """
    name = group.preferred_assignor(settings.group_consumer_assignors[0])
    assignor = ASSIGNORS.get(name)
    if assignor is None:
        raise UnknownServerError(
            f"Failed to compute a new target assignment for epoch {group.group_epoch}: there is no assignor {name}."
        )
    ids_by_subscription: dict[tuple[tuple[str, ...], str], frozenset[bytes]] = {}
    members: dict[str, MemberSpec] = {}
    for member_id, member in group.members.items():
        subscription = (member.subscribed_topic_names, member.subscribed_topic_regex)
        if subscription not in ids_by_subscription:
            ids_by_subscription[subscription] = topics.ids_of(group.topics_of(member))
        topic_ids = ids_by_subscription[subscription]
        members[member_id] = MemberSpec(topic_ids, group.targets.get(member_id, {}), member.instance_id)
    subscribed = frozenset[bytes]().union(*ids_by_subscription.values())
    counts = {topic_id: topics.topics[topics.name_by_id[topic_id]].partition_count for topic_id in subscribed}
    return assignor(GroupSpec(members, counts, group.is_homogeneous))
