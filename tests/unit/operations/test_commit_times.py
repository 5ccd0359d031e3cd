"""What the records of `__consumer_offsets` say of the times of commits, transactions among them."""

from tests.unit.transactions import in_transaction, marker

from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.operations.commit_times import CommitTime, OffsetsReader
from groupkeeper.protocol import OFFSETS_TOPIC
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.offsets_topic import Entry, Tombstone, encode_record
from groupkeeper.protocol.record_batch import Record, write_batch

HERE = TopicPartition(OFFSETS_TOPIC, 0)
P = TopicPartition("orders", 0)


def commit(offset: int, time_ms: int, group: str = "g", expires_ms: int = -1) -> Entry:
    value = m.OffsetCommitValue(offset, commit_timestamp=time_ms, expire_timestamp=expires_ms)
    return Entry(m.OffsetCommitKey(group, *P), value)


def batch(*records: Entry | Tombstone) -> bytes:
    return write_batch([Record(*encode_record(record)) for record in records], base_offset=0)


def transactional(producer_id: int, record: Entry) -> bytes:
    return in_transaction(producer_id, [Record(*encode_record(record))])


def read(*batches: bytes) -> OffsetsReader:
    reader = OffsetsReader(["g"])
    for one in batches:
        assert reader.take(HERE, one) is not None
    return reader


def test_the_last_commit_counts_and_a_deletion_ends_it() -> None:
    assert read(batch(commit(1, 10), commit(2, 20), commit(9, 90, "other"))).commits == {"g": {P: CommitTime(2, 20)}}
    assert read(batch(commit(1, 10), Tombstone(m.OffsetCommitKey("g", *P)))).commits == {"g": {}}
    assert read(batch(commit(1, 10, expires_ms=30))).commits["g"][P].expires_ms == 30


def test_a_transaction_counts_when_it_is_committed() -> None:
    under_way = [batch(commit(1, 10)), transactional(7, commit(2, 20)), transactional(8, commit(3, 30))]
    assert read(*under_way).commits["g"][P].offset == 1
    assert read(*under_way, marker(8, is_commit=False)).commits["g"][P].offset == 1
    assert read(*under_way, marker(8, is_commit=False), marker(7, is_commit=True)).commits["g"][P].offset == 2


def test_since_when_a_group_is_empty() -> None:
    key = m.GroupMetadataKey("g")
    empty = Entry(key, m.GroupMetadataValue("consumer", 3, None, None, 50, []))
    assert read(batch(empty)).empty_ms == {"g": 50}
    simple = Entry(key, m.GroupMetadataValue("", 0, None, None, 50, []))
    for later in (simple, Tombstone(key)):
        assert read(batch(empty, later)).empty_ms == {}


def test_a_batch_that_is_cut_off_or_broken() -> None:
    whole = batch(commit(1, 10))
    reader = OffsetsReader(["g"])
    assert reader.take(HERE, whole[:-1]) is None
    assert reader.take(HERE, whole + whole[:20]) == 1
    broken = bytearray(whole)
    broken[-1] ^= 1
    reader.take(HERE, bytes(broken))
    assert "cannot be read" in str(reader.corrupt[HERE])
