"""kafka-consumer-group-reset against a broker that cannot look up offsets by time."""

import pytest
from tests.unit.client.scripted_broker import ScriptedBroker, fast_admin

from groupkeeper.client.errors import UnsupportedVersion
from groupkeeper.operations.group_reset import generate
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.describe_groups_response import DescribedGroup


@pytest.mark.parametrize("timestamp_ms", [0, 1_700_000_000_000, -5])
async def test_without_an_index_of_times_nothing_is_scanned(timestamp_ms: int) -> None:
    # K122-60
    broker = ScriptedBroker(
        ranges={"ListOffsets": (0, 0), "ConsumerGroupDescribe": None},
        handlers={
            "DescribeGroups": lambda *_: m.DescribeGroupsResponse(
                groups=[DescribedGroup(group_id="g", group_state="Empty", protocol_type="consumer")]
            ),
            "OffsetFetch": lambda *_: m.OffsetFetchResponse(groups=[m.OffsetFetchResponseGroup("g")]),
        },
    )
    broker.topics["orders"] = [0]
    async with broker, fast_admin(broker.bootstrap_servers) as admin:
        with pytest.raises(UnsupportedVersion, match=r"LIST_OFFSETS|ListOffsets"):
            await generate(admin, "g", ["orders"], timestamp_ms)
        assert broker.count("Fetch") == 0
        assert broker.count("OffsetCommit") == 0
