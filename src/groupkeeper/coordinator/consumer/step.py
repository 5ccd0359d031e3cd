"""One operation on a consumer group in the making: its records, and the group as it will be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from groupkeeper.coordinator.assignors import ASSIGNORS
from groupkeeper.coordinator.assignors.spec import GroupSpec, MemberSpec, TargetAssignment
from groupkeeper.coordinator.consumer import records as consumer_records
from groupkeeper.coordinator.consumer.group import (
    UNREVOKED_PARTITIONS,
    ConsumerChange,
    ConsumerGroup,
    ConsumerMember,
    ConsumerSoft,
)
from groupkeeper.coordinator.consumer.reconcile import Goal, ReportedPartitions, reconcile
from groupkeeper.coordinator.consumer.replay import replay
from groupkeeper.coordinator.kernel.result import Meter, Record, RegexLookup, Released, Result
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.kernel.timers import (
    Arm,
    ClassicRejoin,
    ClassicResync,
    ConsumerSession,
    Disarm,
    Revocation,
)
from groupkeeper.coordinator.kernel.topics_image import TopicsImage
from groupkeeper.protocol.errors import UnknownServerError
from groupkeeper.protocol.primitives import Message


class Step:
    """Starts from a group as the log has it; `write` moves a copy of it along with the records.

    Attributes:
        group: the group after what was written so far.
        logged: the group as the log has it.
        topics: the topics of the cluster.
        now_ms: when the operation takes place.
    """

    def __init__(self, group: ConsumerGroup, settings: Settings, topics: TopicsImage, now_ms: int) -> None:
        self.group = group
        self.logged = group
        self._settings = settings
        self.topics = topics
        self.now_ms = now_ms
        self._is_forked = False
        self._records: list[Record] = []
        self._timers: list[Arm | Disarm] = []
        self._soft: ConsumerSoft = group.soft
        self._first_soft: ConsumerSoft = group.soft
        self._lookups: list[RegexLookup] = []
        self._released: list[Released] = []
        self._marks: list[tuple[Meter, int]] = []

    def start_with(self, records: Iterable[Record]) -> None:
        """Records that make room for the group: nothing of it is changed by them."""
        self._records.extend(records)

    def write(self, *records: Record) -> None:
        """Adds records, and lets the group be what they make of it."""
        if not self._is_forked:
            self.group = self.group.fork()
            self._is_forked = True
        for record in records:
            self._records.append(record)
            replay(self.group, record)

    def arm_session(self, member: ConsumerMember) -> None:
        """The member was heard of."""
        self._timers.append(session_timer(self.group.group_id, member, self._settings))

    def arm(self, *timers: Arm | Disarm) -> None:
        """Adds changes of timers."""
        self._timers.extend(timers)

    def release(self, released: Iterable[Released]) -> None:
        """Adds answers to parked calls."""
        self._released.extend(released)

    def look_up(self, lookup: RegexLookup) -> None:
        """Asks for the topics of regular expressions."""
        self._lookups.append(lookup)
        self._soft = ConsumerSoft(self._soft.checked_version, is_resolving=True)

    def end_lookup(self) -> Result:
        """Everything that was decided, and that no lookup goes on any more."""
        self._soft = ConsumerSoft(self._soft.checked_version)
        return self.result(None)

    # --- epochs

    def bump(self) -> None:
        """Raises the group epoch, for the topics as they are now."""
        group = self.group
        metadata_hash = self.topics.metadata_hash(group.subscribed_topics())
        self.write(consumer_records.epoch_record(group.group_id, group.group_epoch + 1, metadata_hash))
        self._soft = ConsumerSoft(self.topics.version, self._soft.is_resolving)

    def is_outdated(self) -> bool:
        """Whether the subscribed topics are others than the group epoch was raised for."""
        group = self.group
        if self._soft.checked_version == self.topics.version:
            return False
        return self.topics.metadata_hash(group.subscribed_topics()) != group.metadata_hash

    def refresh(self, *, must_bump: bool) -> None:
        """Raises the group epoch if the topics changed, or anyway; counts as a rebalance then."""
        group = self.group
        if not must_bump and self._soft.checked_version == self.topics.version:
            return
        if must_bump or self.is_outdated():
            self.bump()
            self._marks.append((Meter.CONSUMER_GROUP_REBALANCE, 1))
        self._soft = ConsumerSoft(self.topics.version, self._soft.is_resolving)
        if group.has_partition_metadata:
            self.write(consumer_records.partition_metadata_tombstone(group.group_id))

    # --- target

    def update_target(self) -> None:
        """Computes a new target assignment when one is due."""
        group = self.group
        if group.assignment_epoch >= group.group_epoch:
            return
        interval_ms = self._settings.group_consumer_assignment_interval_ms
        if group.assignment_time_ms <= self.now_ms < group.assignment_time_ms + interval_ms:
            return
        targets = compute_targets(group, self._settings, self.topics)
        changed = [
            consumer_records.target_record(group.group_id, member_id, target)
            for member_id, target in targets.items()
            if group.targets.get(member_id) != target
        ]
        self.write(*changed, consumer_records.target_epoch_record(group.group_id, group.group_epoch, self.now_ms))

    # --- members

    def reconcile(
        self, member_id: str, *, has_changed_subscription: bool, reported: ReportedPartitions | None
    ) -> ConsumerMember:
        """Brings a member as near to its target as it goes now, and returns it."""
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
        # Nothing comes after it, so the group need not be copied for it.
        self._records.append(consumer_records.assignment_record(group.group_id, updated))
        timer = Revocation(group.group_id, member_id)
        if updated.classic is None:
            is_revoking = updated.state == UNREVOKED_PARTITIONS
            self._timers.append(Arm(timer, updated.rebalance_timeout_ms) if is_revoking else Disarm(timer))
        return updated

    def bring_on(
        self, member_id: str, *, must_bump: bool, has_changed_subscription: bool, reported: ReportedPartitions | None
    ) -> ConsumerMember:
        """All that a member's call sets going: the group epoch, the target, and the member towards it."""
        self.refresh(must_bump=must_bump)
        self.update_target()
        return self.reconcile(member_id, has_changed_subscription=has_changed_subscription, reported=reported)

    def replace_member(self, old: ConsumerMember, member_id: str) -> ConsumerMember:
        """Puts a new member in the place of another, which leaves its target to it."""
        group_id = self.group.group_id
        new = replace(old, member_id=member_id, member_epoch=0, previous_member_epoch=0)
        target = self.group.targets.get(old.member_id, {})
        self.write(
            *consumer_records.member_tombstones(group_id, old.member_id),
            consumer_records.member_record(group_id, new),
            consumer_records.target_record(group_id, new.member_id, target),
            consumer_records.assignment_record(group_id, new),
        )
        self.disarm_all(old.member_id)
        return new

    def remove_members(self, member_ids: Iterable[str]) -> None:
        """Removes members and what only they needed; raises the group epoch."""
        regexes: dict[str, None] = {}
        for member_id in member_ids:
            regexes[self.group.members[member_id].subscribed_topic_regex] = None
            self.write(*consumer_records.member_tombstones(self.group.group_id, member_id))
            self.disarm_all(member_id)
        # Whether resolved or not: a lookup may be under way.
        unused = [regex for regex in regexes if regex and regex not in self.group.regex_counts]
        if unused:
            self.write(*(consumer_records.regex_tombstone(self.group.group_id, regex) for regex in unused))
        self.bump()

    def disarm_all(self, member_id: str) -> None:
        """Forgets every timer of a member."""
        group_id = self.group.group_id
        for timer in (ConsumerSession, Revocation, ClassicRejoin, ClassicResync):
            self._timers.append(Disarm(timer(group_id, member_id)))

    def result(self, response: Message | None) -> Result:
        """Everything that was decided."""
        soft = () if self._soft == self._first_soft else (ConsumerChange(self.group.group_id, self._soft),)
        return Result(
            response,
            records=tuple(self._records),
            timers=tuple(self._timers),
            soft=soft,
            marks=tuple(self._marks),
            released=tuple(self._released),
            lookups=tuple(self._lookups),
        )


def session_timer(group_id: str, member: ConsumerMember, settings: Settings) -> Arm:
    """The time within which a member must be heard of: a member of the classic protocol brings its own."""
    timeout_ms = settings.group_consumer_session_timeout_ms
    if member.classic is not None:
        timeout_ms = member.classic.session_timeout_ms
    return Arm(ConsumerSession(group_id, member.member_id), timeout_ms)


def compute_targets(group: ConsumerGroup, settings: Settings, topics: TopicsImage) -> dict[str, TargetAssignment]:
    """What every member is to have, by the assignor that most prefer. Raises `UnknownServerError` when
    the log has members that prefer one that isn't there.
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
    counts = _partition_counts(ids_by_subscription.values(), topics)
    return assignor(GroupSpec(members, counts, group.is_homogeneous))


def _partition_counts(subscriptions: Iterable[frozenset[bytes]], topics: TopicsImage) -> Mapping[bytes, int]:
    topic_ids = frozenset[bytes]().union(*subscriptions)
    return {topic_id: topics.topics[topics.name_by_id[topic_id]].partition_count for topic_id in topic_ids}
