"""Records, takeovers and conversions keep each field of a member; a new field needs a value in `MEMBERS` here."""

from dataclasses import fields, replace
from typing import Any

import pytest
from tests.unit.coordinator.consumer_driver import topic_id, topics_image

from groupkeeper.coordinator.assignors.spec import Task, TaskRole
from groupkeeper.coordinator.classic.group import ClassicGroup, Member, Roster
from groupkeeper.coordinator.classic.record import group_record, read_roster
from groupkeeper.coordinator.consumer import records as consumer_records
from groupkeeper.coordinator.consumer.conversion import downgrade, upgrade
from groupkeeper.coordinator.consumer.group import UNREVOKED_PARTITIONS, ClassicMetadata, ConsumerGroup, ConsumerMember
from groupkeeper.coordinator.consumer.step import Step
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.coordinator.share import records as share_records
from groupkeeper.coordinator.share.group import ShareGroup, ShareMember
from groupkeeper.coordinator.share.step import ShareStep
from groupkeeper.coordinator.streams import records as streams_records
from groupkeeper.coordinator.streams.group import UNREVOKED_TASKS, StreamsGroup, StreamsMember, UserEndpoint
from groupkeeper.coordinator.streams.step import StreamsStep
from groupkeeper.protocol import consumer_protocol as c
from groupkeeper.protocol.messages.consumer_protocol_assignment import TopicPartition

T1 = topic_id("t1")
TOPICS = topics_image({"t1": 2})
PROTOCOLS = (("range", c.encode_subscription(c.ConsumerProtocolSubscription(["t1"]))),)
ASSIGNMENT = c.encode_assignment(c.ConsumerProtocolAssignment([TopicPartition("t1", [0, 1])]))
CLASSIC = Member("m", "i", "client", "/host", 3000, 2000, PROTOCOLS, ASSIGNMENT)
MEMBERS = [
    CLASSIC,
    ConsumerMember(
        *("m", "rack", "client", "/host", 5, 4, "i", 3000, ("t1",), "t.*", "range", ClassicMetadata(2000, PROTOCOLS)),
        *(UNREVOKED_PARTITIONS, {T1: {0: 3}}, {T1: {1: 2}}),
    ),
    ShareMember("m", "rack", "client", "/host", 5, 4, ("t1",), {T1: frozenset({0})}),
    StreamsMember(
        *("m", "rack", "client", "/host", 5, 4, "i", 3000, 7, "process", UserEndpoint("host", 1), (("tag", "value"),)),
        *(UNREVOKED_TASKS, {Task(TaskRole.ACTIVE, "s", 0): 3}, {Task(TaskRole.ACTIVE, "s", 1): 2}),
    ),
]
KINDS: dict[type, tuple[Any, Any, Any]] = {
    ConsumerMember: (Step, ConsumerGroup, consumer_records),
    ShareMember: (ShareStep, ShareGroup, share_records),
    StreamsMember: (StreamsStep, StreamsGroup, streams_records),
}


def step_with(member: Any) -> Any:
    step, group, records = KINDS[type(member)]
    step = step(group("g"), Settings(), TOPICS, 0)
    step.write(records.member_record("g", member), records.assignment_record("g", member))
    return step


def read_back(entry: Any) -> Member:
    return read_roster(entry.value).members["m"]


@pytest.mark.parametrize("member", MEMBERS)
def test_the_log_keeps_each_field(member: Any) -> None:
    values = {one.name: (getattr(member, one.name), one.default) for one in fields(member)}
    assert [name for name, (value, default) in values.items() if not value or value == default] == []
    if isinstance(member, Member):
        assert read_back(group_record("g", Roster(protocol_name="range").with_member(member))) == member
    else:
        assert step_with(member).group.members["m"] == member


@pytest.mark.parametrize("member", [one for one in MEMBERS if type(one) in (ConsumerMember, StreamsMember)])
def test_who_takes_over_has_each_field(member: Any) -> None:
    step = step_with(member)
    taken_over = step.replace_member(member, "n")
    assert (
        step.group.members["n"] == taken_over == replace(member, member_id="n", member_epoch=0, previous_member_epoch=0)
    )


def test_a_classic_member_keeps_each_field_in_a_consumer_group_and_back() -> None:
    group = ClassicGroup("g", Roster(c.PROTOCOL_TYPE, 5, "range", "m").with_member(CLASSIC))
    step = upgrade(group, Settings(), TOPICS, 0)
    result = downgrade(step, (), None, must_rebalance=False)
    assert read_back(result.records[-1]) == CLASSIC
