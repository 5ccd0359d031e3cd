"""How far groups are: what a producer wrote and a consumer committed is what `lag` says."""

import pytest
from tests.conformance.client.admin.conftest import Target
from tests.conformance.clients import CLIENTS, Sent

from groupkeeper import Admin, NewTopic, OffsetAndMetadata, TopicPartition
from groupkeeper.errors import CallTimedOut, GroupIdNotFound


async def test_lag_of_groups(own: Admin, target: Target, name: str) -> None:
    (await own.create_topics([NewTopic(name, 3, 1)])).all()
    first, second, third = (TopicPartition(name, index) for index in range(3))
    for tp in (first, second):
        records = [Sent(b"%d" % number, partition=tp.partition) for number in range(10)]
        CLIENTS["confluent"].produce(target.bootstrap_servers, name, records)
    (await own.delete_records({second: 4})).all()
    offsets = {first: OffsetAndMetadata(7), second: OffsetAndMetadata(1), third: OffsetAndMetadata(0)}
    (await own.alter_consumer_group_offsets(name, offsets)).all()

    found = await own.lag([name, f"{name}-missing"])
    assert isinstance(found.failed[f"{name}-missing"], GroupIdNotFound)
    group = found.done[name]
    assert group.failure is None
    assert group.group is not None
    assert group.group.group_state == "Empty"
    assert [(each.partition, each.log_start_offset, each.log_end_offset, each.lag, each.lost, each.status)
            for each in group.partitions] == [
        (0, 0, 10, 3, 0, "ok"),
        (1, 4, 10, 9, 3, "below_log_start"),
        (2, 0, 0, 0, 0, "ok"),
    ]  # fmt: skip
    assert group.total == 12

    assert (await own.lag()).done[name] == (await own.lag([name])).done[name]
    by_glob = await own.lag([name], topics=[f"{name[:-2]}*"])
    assert [each.topic for each in by_glob.done[name].partitions] == [name] * 3
    assert (await own.lag([name], topics=["nothere"])).done[name].total is None
    with pytest.raises(CallTimedOut, match="lag timed out after 0 ms"):
        await own.lag(timeout_ms=0)
