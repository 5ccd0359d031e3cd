"""Dead-letter queues of share groups over the wire: what is in the queue, and what happens when it cannot be used."""

import pytest
from tests.broker.conftest import Start, Wire
from tests.broker.held import log_of, topic_of
from tests.broker.log.test_records import batch
from tests.broker.test_share_fetch import ACCEPT, REJECT, RELEASE, SHORT, Consumer, queue
from tests.patience import becomes

from groupkeeper.broker import Broker
from groupkeeper.broker.shares.sessions import FINAL_EPOCH
from groupkeeper.coordinator.share_state.coordinator import ShareStateWrite
from groupkeeper.coordinator.share_state.state import SharePartitionKey, StateBatch
from groupkeeper.protocol.errors import NONE
from groupkeeper.protocol.record_batch import Record, iter_headers, read_records

CREATES: dict[str, str] = {**SHORT, "errors.deadletterqueue.auto.create.topics.enable": "true"}
OWN = {"share.auto.offset.reset": "earliest", "errors.deadletterqueue.topic.name": "dlq.g"}
COPIES = {**OWN, "errors.deadletterqueue.copy.record.enable": "true"}
TOO_OFTEN, REJECTED = b"Offset delivery count exceeded the threshold.", b"Offset rejected by client."


async def member(broker: Broker, settings: dict[str, str], *batches: bytes) -> Consumer:
    """A member of the group g that has taken ten records, and more if there are more."""
    _, topic_id = await queue(broker, 10, *batches)
    broker.group_configs.configure("g", settings)
    found = await Consumer.join(broker, topic_id)
    await found.take()
    return found


async def letters(broker: Broker, count: int, topic: str = "dlq.g") -> list[Record]:
    """The records of the queue, once there are so many."""
    await becomes(lambda: (log := broker.topics.partition(topic, 0)) is not None and log.high_watermark >= count)
    log = log_of(broker, topic)
    block = log.read(0, 1 << 24)
    return [one for position, _ in iter_headers(block) for one in read_records(block, position)]


def told(letter: Record) -> tuple[int, int, bytes | None]:
    """The original's offset, how often it was delivered, and why it is there."""
    said = dict(letter.headers)
    return (
        int(said["__dlq.errors.offset"] or b""),
        int(said["__dlq.errors.delivery.count"] or b""),
        said["__dlq.errors.message"],
    )


async def test_rejected_records_go_to_the_queue(start: Start) -> None:
    broker = await start(properties=CREATES)
    alice = await member(broker, OWN)
    assert await alice.say([(0, 1, REJECT), (2, 8, ACCEPT), (9, 9, REJECT)]) == NONE
    found = await letters(broker, 3)
    assert [told(one) for one in found] == [(0, 1, REJECTED), (1, 1, REJECTED), (9, 1, REJECTED)]
    assert list(found[1].headers) == [
        ("__dlq.errors.topic", b"t"),
        ("__dlq.errors.partition", b"0"),
        ("__dlq.errors.offset", b"1"),
        ("__dlq.errors.group", b"g"),
        ("__dlq.errors.delivery.count", b"1"),
        ("__dlq.errors.message", REJECTED),
    ]
    assert (found[0].key, found[0].value) == (None, None)
    topic = topic_of(broker, "dlq.g")
    assert topic.config.overrides == {
        "errors.deadletterqueue.group.enable": "true",
        "message.timestamp.type": "CreateTime",
    }


async def test_records_that_were_delivered_too_often_are_copied(start: Start) -> None:
    broker = await start(properties=CREATES)
    alice = await member(broker, COPIES)
    assert await alice.take(wait_ms=20_000) == [(0, 9, 2)]  # the lock ended
    assert await alice.say([(4, 4, RELEASE)]) == NONE
    found = await letters(broker, 10)  # the lock of the others ended again
    assert sorted(told(one) for one in found) == [(at, 2, TOO_OFTEN) for at in range(10)]
    assert told(found[0])[0] == 4
    assert (found[0].key, found[0].value) == (b"k", b"v4")


def counts(broker: Broker) -> dict[str, float]:
    """What the metrics say of the queue of g; Kafka has none of them before the first one is counted."""
    found = [one for one in broker.metrics.samples() if "DeadLetterQueue" in one.metric.name]
    assert {one.labels for one in found} <= {("g",)}
    return {one.metric.name.removeprefix("DeadLetterQueue"): one.value for one in found}


async def test_letters_that_cannot_be_written_are_counted(start: Start) -> None:
    broker = await start(properties=CREATES)
    wire = await Wire.open(broker.bootstrap_servers)
    await wire.create("dlq.g", errors_deadletterqueue_group_enable="true", max_message_bytes="1")
    alice = await member(broker, OWN)
    assert counts(broker) == {}
    assert await alice.say([(0, 1, REJECT), (2, 9, ACCEPT)]) == NONE
    led = broker.share_sessions.partitions.get("g", alice.topic_id, 0)
    assert led is not None
    await becomes(lambda: led.states.start_offset == 10)
    assert counts(broker) == {"TotalProduceRequestsPerSec": 2, "FailedProduceRequestsPerSec": 2}


async def test_a_large_range_is_several_batches(start: Start) -> None:
    broker = await start(properties=CREATES)
    wire = await Wire.open(broker.bootstrap_servers)
    await wire.create("dlq.g", errors_deadletterqueue_group_enable="true", max_message_bytes="1000")
    alice = await member(broker, COPIES, batch(30), batch(30, compression="gzip"))
    assert await alice.say([(0, 59, REJECT)]) == NONE
    found = await letters(broker, 60)
    assert [(told(one)[0], one.value) for one in found] == [(at, b"v%d" % (at % 30)) for at in range(60)]
    batches = len(list(iter_headers(log_of(broker, "dlq.g").read(0, 1 << 20))))
    assert 2 < batches < 30
    assert counts(broker) == {"RecordCount": 60, "TotalProduceRequestsPerSec": batches}


@pytest.mark.parametrize("ends", ["by its last request", "by its connection"])
async def test_what_the_last_member_rejects_goes_to_the_queue_before_all_is_unloaded(start: Start, ends: str) -> None:
    broker = await start(properties=CREATES)
    alice = await member(broker, OWN)
    last = FINAL_EPOCH if ends == "by its last request" else None
    assert await alice.say([(0, 9, REJECT)], epoch=last) == NONE
    await alice.wire.close()
    partitions = broker.share_sessions.partitions
    await becomes(lambda: partitions.get("g", alice.topic_id, 0) is None)
    assert [told(one)[0] for one in await letters(broker, 10)] == list(range(10))
    led = await partitions.load("g", alice.topic_id, 0)
    assert (led.states.start_offset, led.states.dead()) == (10, [])
    assert counts(broker)["RecordCount"] == 10


REFUSALS: list[tuple[dict[str, str], dict[str, str], bool, str]] = [
    ({}, {}, False, "topic dlq.g does not exist: create it, or set errors.deadletterqueue.auto.create.topics.enable"),
    ({}, {}, True, "topic dlq.g does not allow it: set errors.deadletterqueue.group.enable=true for the topic"),
    (CREATES, {"errors.deadletterqueue.topic.name": "g.dlq"}, False, "does not begin with 'dlq.'"),
    (CREATES, {"errors.deadletterqueue.topic.name": "dlq.a/b"}, False, "dlq.a/b"),
    ({**CREATES, "errors.deadletterqueue.topic.name.prefix": "x."}, {}, False, "does not begin with 'x.'"),
]


@pytest.mark.parametrize(("of_broker", "own", "exists", "why"), REFUSALS)
async def test_a_queue_that_cannot_be_used_holds_nothing_up(
    start: Start,
    caplog: pytest.LogCaptureFixture,
    of_broker: dict[str, str],
    own: dict[str, str],
    exists: bool,
    why: str,
) -> None:
    broker = await start(properties={**SHORT, **of_broker})
    if exists:
        await (await Wire.open(broker.bootstrap_servers)).create("dlq.g")
    alice = await member(broker, {**OWN, **own})
    assert await alice.say([(0, 9, REJECT)]) == NONE
    led = broker.share_sessions.partitions.get("g", alice.topic_id, 0)
    assert led is not None
    await becomes(lambda: led.states.start_offset == 10)
    assert "share group g: offsets 0 to 9 of t-0 are not in its dead-letter queue" in caplog.text
    assert why in caplog.text


async def test_an_earlier_level_of_share_version_has_no_queues(start: Start) -> None:
    broker = await start(properties={**CREATES, "feature.share.version": "1"})
    alice = await member(broker, OWN)
    assert await alice.say([(0, 9, REJECT)]) == NONE
    led = broker.share_sessions.partitions.get("g", alice.topic_id, 0)
    assert led is not None
    assert led.states.start_offset == 10
    assert broker.topics.get("dlq.g") is None


async def test_the_next_leader_goes_on_with_what_was_on_its_way(start: Start) -> None:
    broker = await start(properties=CREATES)
    alice = await member(broker, OWN)
    partitions = broker.share_sessions.partitions
    key = SharePartitionKey("g", alice.topic_id, 0)
    batches = (StateBatch(0, 3, 3, 2), StateBatch(4, 9, 3, 1))  # archiving, one of them delivered as often as allowed
    partitions.drop(key)
    state = await partitions.coordinators.read_state(key, 0, 1)
    written = ShareStateWrite(state.state_epoch, 0, 0, 0, batches)
    await partitions.coordinators.write_state(key, lambda: written, 1)
    led = await partitions.load("g", alice.topic_id, 0)
    found = await letters(broker, 10)
    assert [told(one) for one in found] == [(at, 2, TOO_OFTEN) for at in range(4)] + [
        (at, 1, REJECTED) for at in range(4, 10)
    ]
    await becomes(lambda: led.states.start_offset == 10)
