"""Fetch sessions on the wire (KIP-227), as Apache Kafka 4.3.1 serves them."""

import asyncio

import pytest
from tests.broker.conftest import Connect, Start, Wire

from groupkeeper.broker import Broker
from groupkeeper.broker.network.fetch_sessions import FetchSessions
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic, ForgottenTopic
from groupkeeper.protocol.record_batch import Record, write_batch

BATCH = write_batch([Record(b"k", b"v", timestamp=1)])
OLD_MS = 120_001


def wanted(**offsets: int) -> list[FetchTopic]:
    """Partitions of topic t, by `p<index>=offset`."""
    parts = [
        FetchPartition(int(name[1:]), fetch_offset=offset, partition_max_bytes=10_000)
        for name, offset in offsets.items()
    ]
    return [FetchTopic("t", partitions=parts)] if parts else []


async def ask(
    wire: Wire,
    session_id: int,
    epoch: int,
    topics: list[FetchTopic],
    *,
    forgotten: tuple[int, ...] = (),
    max_wait_ms: int = 0,
    version: int = 12,
) -> m.FetchResponse:
    request = m.FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=topics,
        forgotten_topics_data=[ForgottenTopic("t", partitions=forgotten)] if forgotten else [],
    )
    return await wire.call(request, version)


def told(answer: m.FetchResponse) -> dict[int, tuple[int, int, int]]:
    """By partition: error, high watermark, bytes of records."""
    return {
        part.partition_index: (part.error_code, part.high_watermark, len(part.records or b""))
        for topic in answer.responses
        for part in topic.partitions
    }


async def opened(wire: Wire, **offsets: int) -> int:
    answer = await ask(wire, 0, 0, wanted(**offsets))
    assert answer.error_code == 0
    assert answer.session_id > 0
    assert len(told(answer)) == len(offsets)
    return answer.session_id


async def test_only_news_are_told(wire: Wire) -> None:
    await wire.create("t", 3)
    session = await opened(wire, p0=0, p1=0, p2=0)
    assert told(await ask(wire, session, 1, [])) == {}
    await wire.produce("t", BATCH, partition=1)
    answer = await ask(wire, session, 2, [])
    assert (answer.session_id, told(answer)) == (session, {1: (0, 1, len(BATCH))})
    assert told(await ask(wire, session, 3, [])) == {1: (0, 1, len(BATCH))}
    assert told(await ask(wire, session, 4, wanted(p1=1))) == {}
    assert told(await ask(wire, session, 5, [])) == {}


async def test_partitions_come_and_go(wire: Wire) -> None:
    await wire.create("t", 3)
    session = await opened(wire, p0=0)
    assert told(await ask(wire, session, 1, wanted(p2=0))) == {2: (0, 0, 0)}
    for partition in range(3):
        await wire.produce("t", BATCH, partition=partition)
    assert told(await ask(wire, session, 2, [], forgotten=(0,))).keys() == {2}
    # A session without partitions ends.
    answer = await ask(wire, session, 3, [], forgotten=(2,))
    assert (answer.error_code, answer.session_id, told(answer)) == (0, 0, {})
    assert (await ask(wire, session, 4, [])).error_code == errors.FetchSessionIdNotFound.code


async def test_errors_are_repeated(wire: Wire) -> None:
    await wire.create("t")
    session = await opened(wire, p0=5, p7=0)
    for epoch in (1, 2):
        assert told(await ask(wire, session, epoch, [])) == {0: (1, -1, 0), 7: (3, -1, 0)}
    assert told(await ask(wire, session, 3, wanted(p0=0), forgotten=(7,))) == {0: (0, 0, 0)}


async def test_those_that_had_records_come_last(wire: Wire) -> None:
    await wire.create("t", 3)
    session = await opened(wire, p0=0, p1=0, p2=0)
    for partition in (0, 2):
        await wire.produce("t", BATCH, partition=partition)
    assert list(told(await ask(wire, session, 1, []))) == [0, 2]
    await wire.produce("t", BATCH, partition=1)
    assert list(told(await ask(wire, session, 2, []))) == [1, 0, 2]


async def test_wrong_epochs_and_ids(wire: Wire) -> None:
    await wire.create("t")
    session = await opened(wire, p0=0)
    answer = await ask(wire, session + 1, 1, [])
    assert (answer.error_code, answer.session_id) == (errors.FetchSessionIdNotFound.code, 0)
    assert (await ask(wire, session, 2, [])).error_code == errors.InvalidFetchSessionEpoch.code
    assert (await ask(wire, session, 1, [], version=13)).error_code == errors.FetchSessionTopicIdError.code
    assert (await ask(wire, session, 1, [])).error_code == 0
    assert (await ask(wire, session, 1, [])).error_code == errors.InvalidFetchSessionEpoch.code
    # A new session takes the place of the old one, which epoch -1 closes.
    again = await ask(wire, session, 0, wanted(p0=0))
    assert again.session_id not in (0, session)
    assert (await ask(wire, session, 2, [])).error_code == errors.FetchSessionIdNotFound.code
    assert (await ask(wire, again.session_id, -1, wanted(p0=0))).session_id == 0
    assert (await ask(wire, again.session_id, 1, [])).error_code == errors.FetchSessionIdNotFound.code


async def test_a_session_that_is_used_twice_at_once(broker: Broker, connect: Connect) -> None:
    one, other = await connect(broker), await connect(broker)
    await one.create("t")
    session = await opened(one, p0=0)
    waiting = asyncio.ensure_future(ask(one, session, 1, [], max_wait_ms=60_000))
    while (await ask(other, session, 2, [])).error_code == errors.InvalidFetchSessionEpoch.code:
        pass
    await other.produce("t", BATCH)
    assert (await waiting).error_code == errors.InvalidFetchSessionEpoch.code


async def test_waiting_in_a_session(broker: Broker, connect: Connect) -> None:
    reader, writer = await connect(broker), await connect(broker)
    topic_id = await writer.create("t", 2)
    parts = [FetchPartition(index, fetch_offset=0, partition_max_bytes=10_000) for index in range(2)]
    first = await ask(reader, 0, 0, [FetchTopic(topic_id=topic_id, partitions=parts)], version=18)
    waiting = asyncio.ensure_future(ask(reader, first.session_id, 1, [], version=18, max_wait_ms=60_000))
    await writer.produce("t", BATCH, partition=1)
    answer = await asyncio.wait_for(waiting, 10)
    assert (answer.responses[0].topic_id, told(answer)) == (topic_id, {1: (0, 1, len(BATCH))})


async def test_no_slots_no_sessions(start: Start, connect: Connect) -> None:
    wire = await connect(await start(properties={"max.incremental.fetch.session.cache.slots": "0"}))
    await wire.create("t")
    assert (await ask(wire, 0, 0, wanted(p0=0))).session_id == 0


def test_eviction() -> None:
    sessions = FetchSessions(2)
    small, large = (sessions.open(1, now, by_id=True) for now in (0, 1000))
    assert small is not None
    assert large is not None
    for session, count in ((small, 1), (large, 9)):
        session.take(m.FetchRequest(topics=wanted(**{f"p{index}": 0 for index in range(count)})))

    def use(session_id: int, epoch: int, now_ms: int) -> None:
        sessions.context(m.FetchRequest(session_id=session_id, session_epoch=epoch), now_ms, by_id=True)

    # Young ones stay; an old small one gives way to a larger one only; one that is unused gives way to any.
    assert sessions.open(5, 2000, by_id=True) is None
    for session in (small, large):
        use(session.session_id, 1, OLD_MS)
    assert sessions.open(1, OLD_MS + 1, by_id=True) is None
    taken = sessions.open(5, OLD_MS + 1, by_id=True)
    assert taken is not None
    with pytest.raises(errors.FetchSessionIdNotFound):
        use(small.session_id, 2, OLD_MS + 2)
    assert sessions.open(1, OLD_MS + 2, by_id=True) is None
    assert sessions.open(1, 2 * OLD_MS, by_id=True) is not None
    with pytest.raises(errors.FetchSessionIdNotFound):
        use(large.session_id, 2, 2 * OLD_MS)
    assert len(sessions) == 2


async def test_the_first_answer_tells_the_order_of_the_next(wire: Wire) -> None:
    await wire.create("t", 3)
    await wire.produce("t", BATCH)
    session = await opened(wire, p7=0, p0=0, p1=0)
    for partition in (0, 1):
        await wire.produce("t", BATCH, partition=partition)
    assert list(told(await ask(wire, session, 1, []))) == [0, 1, 7]


async def test_a_topic_that_goes_is_told_by_the_name_it_had(broker: Broker, connect: Connect) -> None:
    """Its id is unknown only to who names it after it has gone. All of it seen on Apache Kafka 4.3.1."""
    wire, waiting = await connect(broker), await connect(broker)
    topic_id = await wire.create("t")
    by_id = [FetchTopic(topic_id=topic_id, partitions=wanted(p0=0)[0].partitions)]
    session = (await ask(wire, 0, 0, by_id, version=13)).session_id
    parked = asyncio.ensure_future(ask(waiting, session, 1, [], max_wait_ms=20_000, version=13))
    broker.topics.delete("t")
    codes = []
    codes.append(told(await parked)[0][0])
    codes.append(told(await ask(wire, session, 2, [], version=13))[0][0])
    codes.append(told(await ask(wire, 0, -1, by_id, version=13))[0][0])
    await wire.create("t")
    codes.append(told(await ask(wire, session, 3, [], version=13))[0][0])
    gone, unknown, another = errors.UnknownTopicOrPartition, errors.UnknownTopicId, errors.InconsistentTopicId
    assert codes == [gone.code, gone.code, unknown.code, another.code]
