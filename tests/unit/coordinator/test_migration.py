"""Online migration of groups whose members say what the language of the scenarios cannot."""

import pytest
from tests.unit.coordinator.consumer_driver import GROUP, Cluster, Consumer

from groupkeeper.coordinator.classic.group import ClassicGroup
from groupkeeper.coordinator.kernel.settings import Settings
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    encode_assignment,
    encode_subscription,
)
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.messages.consumer_protocol_assignment import TopicPartition

GOOD = encode_subscription(ConsumerProtocolSubscription(["t"]), 1)
CUSTOM = encode_assignment(ConsumerProtocolAssignment([TopicPartition("t", [0])], b"x"))


@pytest.mark.parametrize(
    ("subscription", "assignment", "reason"),
    [(b"\x00", b"", ""), (b"", b"", ""), (GOOD, b"\x00\x01\xff", ""), (GOOD, CUSTOM, "an unsupported custom assignor")],
)
def test_groups_that_are_not_upgraded(subscription: bytes, assignment: bytes, reason: str) -> None:
    # GM-02
    cluster = Cluster({"t": 4}, Settings(group_initial_rebalance_delay_ms=0))
    protocols = [m.JoinGroupRequestProtocol("range", subscription)]
    request = m.JoinGroupRequest(GROUP, 10_000, 20_000, "", "i", "consumer", protocols)
    joined = cluster.ask(request, version=5)
    sent = [m.SyncGroupRequestAssignment(joined.member_id, assignment)]
    sync = m.SyncGroupRequest(GROUP, joined.generation_id, joined.member_id, "i", "consumer", "range", sent)
    assert cluster.ask(sync, version=5).error_code == NONE
    answer = Consumer(cluster, "new").join("t")
    assert answer.error_code == errors.GroupIdNotFound.code
    assert (answer.error_message or "").startswith("Cannot upgrade classic group g to consumer group because")
    assert reason in (answer.error_message or "")
    assert isinstance(cluster.shell.coordinator.state.groups[GROUP], ClassicGroup)
