"""Members of a share group over the wire: sessions, acquisition, acknowledgements, locks, and what a restart keeps."""

import asyncio
import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from tests.broker.conftest import Start, Wire
from tests.broker.log.test_records import batch
from tests.patience import becomes

from groupkeeper.broker import Broker
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.messages import share_acknowledge_request, share_fetch_request
from groupkeeper.protocol.messages.share_fetch_response import PartitionData
from groupkeeper.protocol.record_batch import iter_headers

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
SHORT: dict[str, Any] = {
    "group.share.record.lock.duration.ms": 1000,
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.delivery.count.limit": 2,
    "share.coordinator.state.topic.num.partitions": 2,
    "group.share.assignment.interval.ms": 0,
}
Range = tuple[int, int]
Said = Sequence[tuple[int, int, int]]


class Consumer:
    """A member of group g that fetches from partition 0 of one topic."""

    def __init__(self, wire: Wire, topic_id: bytes, member_id: str) -> None:
        self.wire = wire
        self.topic_id = topic_id
        self.member_id = member_id
        self.epoch = 0

    @classmethod
    async def join(cls, broker: Broker, topic_id: bytes, topic: str = "t") -> Self:
        """Joins the group, and waits until the share-partition is assigned to it."""
        wire = await Wire.open(broker.bootstrap_servers)
        member_id = base64.urlsafe_b64encode(id(wire).to_bytes(16, "big"))[:22].decode()
        epoch = 0
        async with asyncio.timeout(20):
            while True:
                names = [topic] if epoch == 0 else None
                beat = m.ShareGroupHeartbeatRequest("g", member_id, epoch, None, names)
                answer = await wire.call(beat, 1)
                assert answer.error_code == NONE, answer.error_message
                epoch = answer.member_epoch
                if answer.assignment is not None and answer.assignment.topic_partitions:
                    return cls(wire, topic_id, member_id)
                await asyncio.sleep(0.02)

    async def ask(
        self,
        *,
        wait_ms: int = 0,
        max_records: int = 500,
        said: Said = (),
        is_strict: bool = False,
        epoch: int | None = None,
        is_renewal: bool = False,
    ) -> m.ShareFetchResponse:
        batches = [share_fetch_request.AcknowledgementBatch(first, last, [kind]) for first, last, kind in said]
        part = share_fetch_request.FetchPartition(0, acknowledgement_batches=batches)
        request = m.ShareFetchRequest(
            "g",
            self.member_id,
            self.epoch if epoch is None else epoch,
            0 if is_renewal else wait_ms,
            0 if is_renewal else 1,
            0 if is_renewal else 1 << 20,
            0 if is_renewal else max_records,
            max_records,
            int(is_strict),
            is_renewal,
            [share_fetch_request.FetchTopic(self.topic_id, [part])],
        )
        answer = await self.wire.call(request, 2)
        if answer.error_code == NONE and epoch is None:
            self.epoch += 1
        return answer

    async def fetch(self, **arguments: object) -> PartitionData:
        answer = await self.ask(**arguments)  # type: ignore[arg-type]
        assert answer.error_code == NONE
        return answer.responses[0].partitions[0] if answer.responses else PartitionData()

    async def take(self, **arguments: object) -> list[tuple[int, int, int]]:
        """The records it gets, as (first, last, delivery count)."""
        part = await self.fetch(**arguments)
        assert (part.error_code, part.acknowledge_error_code) == (NONE, NONE)
        return [(one.first_offset, one.last_offset, one.delivery_count) for one in part.acquired_records]

    async def say(self, said: Said, epoch: int | None = None) -> int:
        """Acknowledges; the error of the partition, or of the request."""
        batches = [share_acknowledge_request.AcknowledgementBatch(first, last, [kind]) for first, last, kind in said]
        part = share_acknowledge_request.AcknowledgePartition(0, batches)
        topic = share_acknowledge_request.AcknowledgeTopic(self.topic_id, [part])
        request = m.ShareAcknowledgeRequest("g", self.member_id, self.epoch if epoch is None else epoch, topics=[topic])
        answer = await self.wire.call(request, 2)
        if answer.error_code:
            return answer.error_code
        self.epoch += 1
        return answer.responses[0].partitions[0].error_code


async def queue(broker: Broker, records: int = 10, *batches: bytes) -> tuple[Wire, bytes]:
    """A topic t with records; group g reads it from the start."""
    broker.groups.ensure_topic()
    broker.group_configs.configure("g", {"share.auto.offset.reset": "earliest"})
    wire = await Wire.open(broker.bootstrap_servers)
    topic_id = await wire.create("t")
    for one in batches or [batch(records)]:
        assert (await wire.produce("t", one)).error_code == NONE
    return wire, topic_id


async def members(broker: Broker, count: int) -> list[Consumer]:
    """Of the group that reads a topic t with ten records."""
    _, topic_id = await queue(broker)
    return [await Consumer.join(broker, topic_id) for _ in range(count)]


@pytest.fixture
async def broker(start: Start) -> Broker:
    return await start(properties=SHORT)


async def test_records_go_to_one_member_each(broker: Broker) -> None:
    wire, topic_id = await queue(broker)
    alice = await Consumer.join(broker, topic_id)
    bob = await Consumer.join(broker, topic_id)
    answer = await alice.fetch()
    assert [header.record_count for _, header in iter_headers(answer.records or b"")] == [10]
    assert (answer.acquired_records[0].first_offset, answer.acquired_records[0].last_offset) == (0, 9)
    assert await bob.take() == []
    assert await bob.say([(0, 9, ACCEPT)]) == errors.InvalidRecordState.code
    assert await alice.say([(0, 3, ACCEPT), (4, 4, RELEASE), (5, 9, REJECT)]) == NONE
    assert await bob.take() == [(4, 4, 2)]
    waiting = asyncio.ensure_future(alice.take(wait_ms=20_000))
    await wire.produce("t", batch(2))
    assert await waiting == [(10, 11, 1)]


async def test_a_waiting_member_gets_what_another_gives_back(broker: Broker) -> None:
    alice, bob = await members(broker, 2)
    assert await alice.take() == [(0, 9, 1)]
    waiting = asyncio.ensure_future(bob.take(wait_ms=20_000))
    assert await alice.say([(2, 5, RELEASE)]) == NONE
    assert await waiting == [(2, 5, 2)]


async def test_locks_end_and_deliveries_are_counted(broker: Broker) -> None:
    alice, bob = await members(broker, 2)
    assert (await alice.ask()).acquisition_lock_timeout_ms == 1000
    assert await bob.take(wait_ms=20_000) == [(0, 9, 2)]
    assert await alice.say([(0, 9, ACCEPT)]) == errors.InvalidRecordState.code
    # The limit is 2: what bob gives back is archived.
    assert await bob.say([(0, 0, RELEASE), (1, 9, ACCEPT)]) == NONE
    assert await alice.take(wait_ms=50) == []


async def test_locks_end_though_the_clock_is_set_back(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    alice, bob = await members(broker, 2)
    assert await alice.take() == [(0, 9, 1)]
    now_ms = broker.now_ms
    monkeypatch.setattr(broker, "now_ms", lambda: now_ms() - 3_600_000)
    assert await bob.take(wait_ms=20_000) == [(0, 9, 2)]


async def test_a_lock_can_be_renewed(start: Start) -> None:
    broker = await start(properties=SHORT | {"group.share.record.lock.duration.ms": 2000})
    alice, bob = await members(broker, 2)
    assert await alice.take() == [(0, 9, 1)]
    loop = asyncio.get_running_loop()
    begun = loop.time()
    waiting = asyncio.ensure_future(bob.take(wait_ms=20_000))
    while loop.time() < begun + 2.5:
        renewed = await alice.fetch(said=[(0, 9, RENEW)], is_renewal=True)
        assert (renewed.acknowledge_error_code, renewed.acquired_records) == (NONE, [])
        await asyncio.sleep(0.1)
    assert not waiting.done()
    assert await waiting == [(0, 9, 2)]
    refused = await alice.fetch(said=[(0, 9, RENEW)], wait_ms=0)
    assert refused.acknowledge_error_code == errors.InvalidRequest.code  # only with is_renew_ack


async def test_the_end_of_a_session_or_connection_gives_records_back(broker: Broker) -> None:
    _, topic_id = await queue(broker, 0, batch(3), batch(3))
    alice, bob = await Consumer.join(broker, topic_id), await Consumer.join(broker, topic_id)
    assert await alice.take(max_records=3) == [(0, 2, 1)]
    assert await bob.take(max_records=3) == [(3, 5, 1)]
    assert (await alice.ask(said=[(0, 0, ACCEPT)], epoch=-1)).error_code == NONE
    assert (await alice.ask()).error_code == errors.ShareSessionNotFound.code
    await bob.wire.close()
    carol = await Consumer.join(broker, topic_id)
    got: list[tuple[int, int, int]] = []
    while sum(last - first + 1 for first, last, _ in got) < 5:
        got += await carol.take(wait_ms=5000)
    assert {(offset, count) for first, last, count in got for offset in range(first, last + 1)} == {
        (offset, 2) for offset in range(1, 6)
    }


async def test_sessions_are_in_order(start: Start) -> None:
    limits = {"group.share.max.share.sessions": 1, "group.share.max.size": 1}
    broker = await start(properties=SHORT | limits)
    (alice,) = await members(broker, 1)
    assert (await alice.ask(epoch=0, said=[(0, 0, ACCEPT)])).error_code == errors.InvalidRequest.code
    assert (await alice.ask(epoch=5)).error_code == errors.ShareSessionNotFound.code
    assert await alice.say([(0, 9, ACCEPT)], epoch=0) == errors.InvalidShareSessionEpoch.code
    assert await alice.say([(0, 9, ACCEPT)], epoch=-1) == errors.ShareSessionNotFound.code
    assert await alice.take() == [(0, 9, 1)]
    assert (await alice.ask(epoch=7)).error_code == errors.InvalidShareSessionEpoch.code
    bob = Consumer(await Wire.open(broker.bootstrap_servers), alice.topic_id, "bob")
    assert (await bob.ask()).error_code == errors.ShareSessionLimitReached.code
    assert await alice.say([(9, 0, ACCEPT)]) == errors.InvalidRequest.code
    assert await alice.say([(0, 9, 7)]) == errors.InvalidRequest.code
    assert await alice.say([(0, 10, ACCEPT)]) == errors.InvalidRequest.code
    assert await alice.say([(0, 9, ACCEPT)]) == NONE


async def test_a_member_may_want_no_more_than_it_says(broker: Broker) -> None:
    alice, bob = await members(broker, 2)
    assert await alice.take(max_records=3, is_strict=True) == [(0, 2, 1)]
    assert await bob.take(max_records=3) == [(3, 9, 1)]


@pytest.mark.timeout(120)
async def test_a_restart_keeps_what_was_said(start: Start, tmp_path: Path) -> None:
    first = await start(directory=tmp_path, properties=SHORT)
    _, topic_id = await queue(first)
    alice = await Consumer.join(first, topic_id)
    assert await alice.take() == [(0, 9, 1)]
    assert await alice.say([(0, 1, ACCEPT), (3, 4, ACCEPT), (5, 5, RELEASE), (6, 6, REJECT)]) == NONE
    await first.stop()
    second = await start(directory=tmp_path, properties=SHORT)
    bob = await Consumer.join(second, topic_id)
    got: list[tuple[int, int, int]] = []
    while len(got) < 3:
        got += await bob.take(wait_ms=100)
    assert got == [(2, 2, 2), (5, 5, 2), (7, 9, 2)]


async def test_deleted_records_and_topics(broker: Broker) -> None:
    wire, topic_id = await queue(broker)
    alice = await Consumer.join(broker, topic_id)
    assert await alice.take() == [(0, 9, 1)]
    deletion = m.DeleteRecordsRequest([m.DeleteRecordsTopic("t", [m.DeleteRecordsPartition(0, 6)])], 1000)
    await wire.call(deletion, 2)
    assert await alice.say([(0, 7, RELEASE)]) == NONE
    assert await alice.take() == [(6, 7, 2)]
    await wire.call(m.DeleteTopicsRequest([m.DeleteTopicState("t", b"\0" * 16)]), 6)
    assert await alice.say([(6, 7, ACCEPT)]) == errors.UnknownTopicId.code
    assert (await alice.fetch()).error_code == errors.UnknownTopicOrPartition.code


async def test_how_many_records_are_locked_at_once(start: Start) -> None:
    broker = await start(properties={**SHORT, "group.share.partition.max.record.locks": 100})
    _, topic_id = await queue(broker, 0, *[batch(10)] * 15)
    alice = await Consumer.join(broker, topic_id)
    assert (await alice.take(max_records=500))[-1][1] == 99
    broker.group_configs.configure("g", {"share.partition.max.record.locks": "120"})
    assert (await alice.take(max_records=500))[-1][1] == 119


@pytest.mark.parametrize(("reset", "first"), [("latest", 10), ("earliest", 0), ("by_duration:PT1H", 5)])
async def test_where_a_group_begins(broker: Broker, reset: str, first: int) -> None:
    now_ms = broker.now_ms()
    wire, topic_id = await queue(broker, 0, batch(5, timestamp=now_ms - 7_200_000), batch(5, timestamp=now_ms))
    broker.group_configs.configure("g", {"share.auto.offset.reset": reset})
    alice = await Consumer.join(broker, topic_id)
    got = await alice.take()
    await wire.produce("t", batch(1, timestamp=now_ms))
    got += await alice.take(wait_ms=5000)
    assert got[0][0] == first


async def test_a_member_that_left_sees_altered_offsets(broker: Broker) -> None:
    """Its session goes on: what its leader knew must neither be handed out nor stored any more."""
    (alice,) = await members(broker, 1)  # GS-17
    assert await alice.take() == [(0, 9, 1)]
    leave = m.ShareGroupHeartbeatRequest("g", alice.member_id, -1)
    assert (await alice.wire.call(leave, 1)).error_code == NONE
    for offset in (4, 5):  # the second time at the same group epoch
        part = m.AlterShareGroupOffsetsRequestPartition(0, offset)
        alter = m.AlterShareGroupOffsetsRequest("g", [m.AlterShareGroupOffsetsRequestTopic("t", [part])])
        altered = await alice.wire.call(alter, 0)
        assert altered.responses[0].partitions[0].error_code == NONE
        assert await alice.say([(0, 9, ACCEPT)]) == errors.UnknownTopicOrPartition.code
        assert await alice.take() == [(offset, 9, 1)]


async def test_a_fetch_ends_with_its_session(broker: Broker) -> None:
    (alice,) = await members(broker, 1)
    assert await alice.take() == [(0, 9, 1)]
    waiting = asyncio.ensure_future(alice.ask(wait_ms=20_000))
    session = broker.share_sessions.require("g", alice.member_id, 1, -1)
    await becomes(lambda: session.epoch >= 2)
    elsewhere = Consumer(await Wire.open(broker.bootstrap_servers), alice.topic_id, alice.member_id)
    assert (await elsewhere.ask(epoch=-1)).error_code == NONE
    assert (await waiting).error_code == errors.ShareSessionNotFound.code
    bob = await Consumer.join(broker, alice.topic_id)
    assert await bob.take() == [(0, 9, 2)]


async def test_a_connection_may_have_several_sessions(broker: Broker) -> None:
    _, topic_id = await queue(broker, 0, batch(3), batch(3))
    alice = await Consumer.join(broker, topic_id)
    other = Consumer(alice.wire, topic_id, "other")
    assert await alice.take(max_records=3) == [(0, 2, 1)]
    assert await other.take(max_records=3) == [(3, 5, 1)]
    await alice.wire.close()
    await becomes(lambda: not len(broker.share_sessions))
    bob = await Consumer.join(broker, topic_id)
    assert await bob.take(wait_ms=5000) == [(0, 5, 2)]


async def test_a_topic_that_is_made_again_begins_anew(broker: Broker) -> None:
    wire, topic_id = await queue(broker)
    alice = await Consumer.join(broker, topic_id)
    assert await alice.take() == [(0, 9, 1)]
    assert await alice.say([(0, 9, ACCEPT)]) == NONE
    await wire.call(m.DeleteTopicsRequest([m.DeleteTopicState("t", b"\0" * 16)]), 6)
    again = await wire.create("t")
    assert (await wire.produce("t", batch(4))).error_code == NONE
    bob = await Consumer.join(broker, again)
    assert await bob.take(wait_ms=5000) == [(0, 3, 1)]
    assert await alice.say([(0, 3, ACCEPT)]) == errors.UnknownTopicId.code
    assert await bob.say([(0, 3, ACCEPT)]) == NONE


async def test_the_share_coordinator_counts_its_writes(broker: Broker) -> None:  # GT-04
    wire, topic_id = await queue(broker)
    value = broker.metrics.value
    alice = await Consumer.join(broker, topic_id)
    assert await alice.take() == [(0, 9, 1)]
    before = value("write-total")
    assert before > 0  # initialized, and read by its leader
    assert await alice.say([(0, 9, ACCEPT)]) == NONE
    assert value("write-total") == before + 1
    assert value("write-rate") > 0
    assert value("write-latency-max") >= value("write-latency-avg") > 0
    deletion = m.DeleteTopicsRequest([m.DeleteTopicState("t", b"\0" * 16)])
    await wire.call(deletion, 6)
    assert value("write-total") == before + 2


async def test_a_group_that_never_began_is_told_after_its_wait(broker: Broker) -> None:
    wire, topic_id = await queue(broker)
    alice = Consumer(wire, topic_id, "A" * 22)
    assert (await alice.ask(epoch=0)).responses == []
    began = asyncio.get_running_loop().time()
    part = (await alice.ask(epoch=0, wait_ms=300)).responses[0].partitions[0]
    assert part.error_code == errors.UnknownServerError.code
    assert asyncio.get_running_loop().time() - began >= 0.3


async def test_who_wants_no_records_gets_none(broker: Broker) -> None:
    (alice,) = await members(broker, 1)
    assert await alice.take(max_records=0, wait_ms=20_000) == []
    assert await alice.take() == [(0, 9, 1)]
