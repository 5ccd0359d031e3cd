"""What the checkers of custody take members to have, where what they say and what they are told differ."""

import pytest
from tests.simulation.consumer.check_custody import Commits, Custody
from tests.simulation.consumer.facts import ConsumerFacts
from tests.simulation.observation import Violation

from groupkeeper.coordinator.consumer import records as consumer_records
from groupkeeper.coordinator.consumer.group import ConsumerMember
from groupkeeper.coordinator.kernel.result import GroupCall
from groupkeeper.coordinator.kernel.topics_image import TopicShape
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import encode_assignment
from groupkeeper.protocol.errors import NONE, NotCoordinator
from groupkeeper.protocol.messages.consumer_group_heartbeat_request import TopicPartitions as Reported
from groupkeeper.protocol.messages.consumer_group_heartbeat_response import Assignment, TopicPartitions
from groupkeeper.protocol.messages.consumer_protocol_assignment import TopicPartition
from groupkeeper.protocol.offsets_topic import Entry, Tombstone
from groupkeeper.protocol.primitives import Message

TOPIC_ID = b"\1" * 16


class Door:
    """The coordinator's door of a group with members a and b, who want a topic of two partitions. `Custody` and
    `Commits` see what goes through.
    """

    def __init__(self) -> None:
        self.facts = facts = ConsumerFacts()
        facts.with_topics({"t": TopicShape("t", TOPIC_ID, 2)}, is_new=True)
        for member_id in "ab":
            facts.note(consumer_records.member_record("g", ConsumerMember(member_id, subscribed_topic_names=("t",))))
        custody = Custody(facts)
        self._checkers = (custody, Commits(facts, custody))

    def beat(
        self, who: str, epoch: int, told: list[int] | None = None, *, owns: list[int] | None = None, error: int = NONE
    ) -> None:
        """A heartbeat that says what the member owns, and an answer with an epoch, and perhaps an assignment."""
        said = None if owns is None else [Reported(TOPIC_ID, owns)] if owns else []
        assignment = None if told is None else Assignment([TopicPartitions(TOPIC_ID, told)] if told else [])
        self._pass(
            m.ConsumerGroupHeartbeatRequest("g", who, epoch, topic_partitions=said),
            m.ConsumerGroupHeartbeatResponse(
                error_code=error, member_id=who, member_epoch=epoch if error == NONE else 0, assignment=assignment
            ),
        )

    def commit(self, who: str, epoch: int, partition: int) -> None:
        """A commit that is accepted."""
        topic = m.OffsetCommitRequestTopic("t", partitions=[m.OffsetCommitRequestPartition(partition, 5)])
        answered = m.OffsetCommitResponseTopic("t", partitions=[m.OffsetCommitResponsePartition(partition)])
        self._pass(m.OffsetCommitRequest("g", epoch, who, topics=[topic]), m.OffsetCommitResponse(topics=[answered]))

    def _pass(self, request: Message, response: Message) -> None:
        call = GroupCall(1, request, 1, "client")
        for checker in self._checkers:
            checker.on_request(call)
        for checker in self._checkers:
            checker.on_answer(call, response, was_parked=False)


@pytest.fixture
def door() -> Door:
    return Door()


def test_what_a_member_has_yet_to_take_up_is_its_own(door: Door) -> None:  # GN-12, GN-13, GO-07
    door.beat("a", 2, [0, 1])
    door.beat("a", 3, [1], owns=[0])  # it has not taken 1 up, and has to give 0 back
    door.beat("a", 4, owns=[])
    door.commit("a", 3, 1)
    door.beat("b", 4, [0])
    with pytest.raises(Violation, match="Custody"):
        door.beat("b", 5, [1])


def test_what_is_taken_from_a_member_that_has_it_not_is_free(door: Door) -> None:  # GN-12, GO-07
    door.beat("a", 2, [0, 1])
    door.beat("a", 3, [0], owns=[])
    door.beat("b", 3, [1])
    door.commit("a", 2, 0)
    with pytest.raises(Violation, match="Commits"):
        door.commit("a", 2, 1)


def test_what_a_member_still_has_is_not_free(door: Door) -> None:  # GN-12
    door.beat("a", 2, [0, 1])
    door.beat("a", 2, [0], owns=[0, 1])
    with pytest.raises(Violation, match="Custody"):
        door.beat("b", 3, [1])


def test_what_a_member_gives_back_is_free(door: Door) -> None:  # GN-12
    door.beat("a", 2, [0, 1])
    door.beat("a", 2, [0])
    door.beat("a", 3, owns=[0])
    door.beat("b", 3, [1])


def test_what_the_coordinator_could_not_hear_is_not_said(door: Door) -> None:  # GN-12
    door.beat("a", 2, [0, 1])
    door.beat("a", 2, [0])
    door.beat("a", 2, owns=[0], error=NotCoordinator.code)
    with pytest.raises(Violation, match="Custody"):
        door.beat("b", 3, [1])


def test_what_members_had_before_an_upgrade_is_theirs_until_the_epoch_rises(door: Door) -> None:  # GM-03
    had = encode_assignment(m.ConsumerProtocolAssignment([TopicPartition("t", [0])]), 1)
    classic = m.MemberMetadata("a", session_timeout=1, subscription=b"", assignment=had)
    door.facts.note(Entry(m.GroupMetadataKey("g"), m.GroupMetadataValue("consumer", 3, members=[classic])))
    door.facts.note(Tombstone(m.GroupMetadataKey("g")))
    for member_id in "ab":
        door.facts.note(consumer_records.member_record("g", ConsumerMember(member_id, subscribed_topic_names=("u",))))
    door.facts.note(consumer_records.epoch_record("g", 4, 0))
    door.beat("a", 4, [0])
    with pytest.raises(Violation, match="Custody"):
        door.beat("b", 4, [1])
    door.facts.note(consumer_records.epoch_record("g", 5, 0))
    with pytest.raises(Violation, match="Custody"):
        door.beat("a", 5, [0])
