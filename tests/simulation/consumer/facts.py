"""What the log says of consumer groups, and the topics of the cluster."""

import re
from dataclasses import dataclass, field

from tests.simulation.observation import Checker, Facts

from groupkeeper.coordinator.kernel.result import GroupCall, Record
from groupkeeper.coordinator.kernel.topics_image import TopicShape, TopicsImage
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import decode_assignment
from groupkeeper.protocol.offsets_topic import Entry
from groupkeeper.protocol.primitives import Message


@dataclass(slots=True)
class ConsumerFacts(Facts):
    """Facts of consumer groups by the log's records.

    Attributes:
        topics: of the cluster.
        members: by group and member id; a group of another type has none.
        is_consumer: groups of the consumer protocol.
        inherited: by upgraded group and member, the partitions that it had in the classic group. It keeps them, as in
            Apache Kafka 4.3.1, until the group's epoch rises; subscriptions to topics that don't exist do not raise it.
        upgrades, downgrades: how often a group with members changed its type.
        rebalances_due: groups that were downgraded and have had no generation since.
        rebalances_lost: those of them whose coordinator died: the log doesn't say that they were to rebalance (GM-07).
    """

    topics: TopicsImage = field(default_factory=TopicsImage)
    members: dict[str, dict[str, m.ConsumerGroupMemberMetadataValue]] = field(default_factory=dict)
    is_consumer: set[str] = field(default_factory=set)
    inherited: dict[str, dict[str, set[tuple[str, int]]]] = field(default_factory=dict)
    upgrades: int = 0
    downgrades: int = 0
    rebalances_due: set[str] = field(default_factory=set)
    rebalances_lost: set[str] = field(default_factory=set)
    _upgraded_at: dict[str, int] = field(default_factory=dict)
    """The first epochs of upgraded groups."""

    def note(self, record: Record) -> None:
        key = record.key
        if isinstance(key, m.ConsumerGroupMemberMetadataKey):
            members = self.members.setdefault(key.group_id, {})
            members.pop(key.member_id, None)
            if isinstance(record, Entry):
                assert isinstance(record.value, m.ConsumerGroupMemberMetadataValue)
                members[key.member_id] = record.value
                self.is_consumer.add(key.group_id)
        elif isinstance(key, m.ConsumerGroupMetadataKey):
            if isinstance(record, Entry):
                assert isinstance(record.value, m.ConsumerGroupMetadataValue)
                self.is_consumer.add(key.group_id)
                epoch = self._upgraded_at.setdefault(key.group_id, record.value.epoch)
                if record.value.metadata_hash or record.value.epoch != epoch:
                    self.inherited.pop(key.group_id, None)
            else:
                self.is_consumer.discard(key.group_id)
                self.inherited.pop(key.group_id, None)
        else:
            self._note_migration(record)
            Facts.note(self, record)

    def _note_migration(self, record: Record) -> None:
        if not isinstance(record.key, m.GroupMetadataKey):
            return
        group_id = record.key.group
        before = self.group_values.get(group_id)
        self.rebalances_due.discard(group_id)
        self.rebalances_lost.discard(group_id)
        if not isinstance(record, Entry):
            self.upgrades += before is not None and bool(before.members)
            if before is not None:
                self._upgraded_at.pop(group_id, None)
                self.inherited[group_id] = {one.member_id: _assigned(one.assignment) for one in before.members}
        elif before is None:
            assert isinstance(record.value, m.GroupMetadataValue)
            if record.value.members and record.value.generation > 1:
                self.downgrades += 1
                self.rebalances_due.add(group_id)

    def note_restart(self) -> None:
        """Another coordinator knows only what is in the log."""
        self.rebalances_lost |= self.rebalances_due

    def with_topics(self, counts: dict[str, TopicShape], *, is_new: bool) -> TopicsImage:
        """The image after a change."""
        version = self.topics.version + 1
        self.topics = TopicsImage(version, version if is_new else self.topics.version_with_new_topics, counts)
        return self.topics

    def matching(self, regex: str) -> frozenset[str]:
        """The topics that a regular expression matches."""
        return frozenset(name for name in self.topics.topics if re.fullmatch(regex, name))


def _assigned(assignment: bytes) -> set[tuple[str, int]]:
    topics = decode_assignment(assignment).assigned_partitions if assignment else ()
    return {(topic.topic, one) for topic in topics for one in topic.partitions}


class ConsumerChecker(Checker):
    """Base of the checkers of consumer groups."""

    facts: ConsumerFacts

    def on_delivery(self, call: GroupCall, response: Message, *, is_lost: bool) -> None:
        """The answer leaves; a lost one reaches nobody."""
