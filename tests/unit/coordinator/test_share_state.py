"""The share coordinator: what it stores of share-partitions, whom it fences, and when it writes snapshots."""

import pytest
from tests.unit.coordinator.share_state_driver import Store, batches

from groupkeeper.coordinator.share_state.state import ShareState, combine_batches
from groupkeeper.protocol.codec import MalformedMessage
from groupkeeper.protocol.errors import FencedLeaderEpoch, FencedStateEpoch, InvalidRequest, UnknownTopicOrPartition
from groupkeeper.protocol.share_state_topic import decode_share_state

# --- GS-10


def test_a_new_share_partition_begins_where_it_is_told_to() -> None:  # GS-10
    store = Store()
    store.initialize(state_epoch=3, start_offset=-1)
    assert store.state == ShareState(0, 3, 0, -1, -1, (), store.now_ms, store.now_ms)
    store.initialize(state_epoch=4, start_offset=7)
    assert store.state == ShareState(1, 4, 0, 7, 0, (), store.now_ms, store.now_ms)


def test_an_older_state_epoch_is_fenced() -> None:  # GS-10, GS-11
    store = Store()
    store.initialize(state_epoch=3)
    with pytest.raises(FencedStateEpoch):
        store.initialize(state_epoch=2)
    store.initialize(state_epoch=3, start_offset=5)
    with pytest.raises(FencedStateEpoch):
        store.write(state_epoch=2)
    store.write(start_offset=6)
    store.write(state_epoch=9, start_offset=7)
    assert store.state.start_offset == 7
    assert store.state.state_epoch == 3


# --- what every operation refuses


@pytest.mark.parametrize("operation", ["initialize", "write", "read", "summary", "delete"])
def test_partitions_that_cannot_be(operation: str) -> None:  # GS-10 … GS-13
    store = Store(partition_count=2)
    for partition in (0, 1):
        store.at(partition).initialize()
    with pytest.raises(InvalidRequest, match="cannot be a negative number"):
        getattr(store.at(-1), operation)()
    if operation not in ("write", "read"):
        with pytest.raises(UnknownTopicOrPartition):
            getattr(store.at(2), operation)()
    store.partition_count = 1
    with pytest.raises(UnknownTopicOrPartition):
        getattr(store.at(1), operation)()
    getattr(store.at(0), operation)()


def test_what_was_never_initialized() -> None:  # GS-11, GS-12, GS-13
    store = Store()
    with pytest.raises(InvalidRequest, match=r"^Write operation on uninitialized share partition not allowed\.$"):
        store.write()
    with pytest.raises(InvalidRequest, match=r"^Read operation on uninitialized share partition not allowed\.$"):
        store.read()
    assert store.summary().start_offset == -1
    assert store.summary().delivery_complete_count == -1
    store.delete()
    assert store.written == []


# --- GS-11


def test_a_write_is_merged() -> None:  # GS-11
    store = Store()
    store.initialize(start_offset=0)
    store.write(start_offset=0, added=batches("0-9:0/1"), complete=0)
    store.write(start_offset=4, added=batches("3-5:2/1 9-12:4/3"), complete=4)
    assert store.state.batches == batches("4-5:2/1 6-8:0/1 9-12:4/3")
    assert store.state.start_offset == 4
    assert store.state.delivery_complete_count == 4
    store.write(start_offset=-1, added=batches("6-6:0/2"), complete=4)
    assert store.state.start_offset == 4
    assert store.state.batches == batches("4-5:2/1 6-6:0/2 7-8:0/1 9-12:4/3")


def test_a_leader_of_earlier_times_is_fenced() -> None:  # GS-11, GS-12
    store = Store()
    store.initialize()
    assert store.read(leader_epoch=5).leader_epoch == 0
    assert store.state.leader_epoch == 5
    with pytest.raises(FencedLeaderEpoch):
        store.write(leader_epoch=4)
    with pytest.raises(FencedLeaderEpoch):
        store.read(leader_epoch=4)
    store.write(leader_epoch=6)
    assert store.state.leader_epoch == 5  # only reading makes a leader
    assert store.summary().leader_epoch == 5


def test_a_leader_that_reads_again_writes_nothing() -> None:  # GS-12
    store = Store()
    store.initialize()
    store.read(leader_epoch=5)
    count = len(store.written)
    store.read(leader_epoch=5)
    assert len(store.written) == count


def test_epochs_are_not_negative() -> None:  # GS-10, GS-11, GS-12
    store = Store()
    for ask in (
        lambda: store.initialize(state_epoch=-1),
        lambda: store.write(state_epoch=-1),
        lambda: store.write(leader_epoch=-1),
        lambda: store.read(leader_epoch=-1),
    ):
        with pytest.raises(InvalidRequest, match=r"The (leader|state) epoch cannot be a negative number\."):
            ask()


def test_a_write_that_was_overtaken_takes_nothing_back() -> None:  # GS-11
    store = Store()
    store.initialize()
    store.write(start_offset=4, added=batches("4-9:4/1"), complete=6)
    store.write(start_offset=2, added=batches("2-5:2/1"), complete=2)
    assert (store.state.start_offset, store.state.delivery_complete_count) == (4, 6)
    store.write(start_offset=4, complete=3)
    assert store.state.delivery_complete_count == 6


# --- GS-14


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_snapshots_come_after_so_many_updates(limit: int) -> None:  # GS-14
    store = Store(updates_per_snapshot=limit)
    store.initialize(start_offset=0)
    for offset in range(10):
        store.write(start_offset=offset, added=batches(f"{offset}-{offset}:2/1"))
    kinds = "".join(type(record).__name__[5] for record in store.written)
    assert kinds == {0: "S" * 11, 1: "SUSUSUSUSUS", 3: "SUUUSUUUSUU"}[limit]
    assert store.state.start_offset == 9
    assert store.state.batches == batches("9-9:2/1")


def test_the_log_gives_the_same_state() -> None:  # GS-14
    store = Store(updates_per_snapshot=2)
    store.initialize(state_epoch=2, start_offset=0)
    store.read(leader_epoch=3)
    for offset in range(5):
        store.write(start_offset=0, added=batches(f"{offset * 2}-{offset * 2}:2/1"), complete=offset)
    other = store.at(1)
    other.initialize(state_epoch=2)
    assert store.rebuilt() == store.coordinator.states
    store.delete()
    assert store.rebuilt() == store.coordinator.states
    assert other.state.state_epoch == 2


def test_redundant_records_can_go() -> None:  # GS-14
    store = Store(updates_per_snapshot=1)
    assert store.coordinator.redundant_offset == -1
    store.initialize()  # 0
    other = store.at(1)
    other.initialize()  # 1
    assert store.coordinator.redundant_offset == 0
    store.write()  # 2
    store.write()  # 3, a snapshot
    assert store.coordinator.redundant_offset == 1
    assert store.rebuilt(from_offset=1) == store.coordinator.states
    other.delete()
    assert store.coordinator.redundant_offset == 3


def test_a_cold_share_partition_gets_a_snapshot() -> None:  # GS-14
    store = Store()
    store.initialize()
    store.now_ms += 299_999
    warm = store.at(1)
    warm.initialize()
    store.now_ms += 1
    before = store.state
    store.snapshot_cold()
    assert store.state.snapshot_epoch == before.snapshot_epoch + 1
    assert (store.state.create_timestamp, store.state.write_timestamp) == (before.create_timestamp, store.now_ms)
    assert warm.state.snapshot_epoch == 0
    # Once all are cold nothing is to be gained any more.
    store.now_ms += 300_000
    store.snapshot_cold()
    count = len(store.written)
    store.now_ms += 300_000
    store.snapshot_cold()
    assert len(store.written) == count


# --- GS-13, GS-20


def test_topics_that_are_deleted() -> None:  # GS-20
    store = Store()
    store.initialize()
    store.remove_topics(b"\x09" * 16)
    assert store.coordinator.states
    store.remove_topics(store.key.topic_id)
    assert not store.coordinator.states


# --- combining


@pytest.mark.parametrize(
    ("stored", "added", "start", "combined"),
    [
        ("", "", 0, ""),
        ("", "5-9:0/1", -1, "5-9:0/1"),
        ("0-4:0/1", "5-9:0/1", 0, "0-9:0/1"),  # neighbours that are alike
        ("0-4:0/1", "6-9:0/1", 0, "0-4:0/1 6-9:0/1"),
        ("0-9:0/1", "3-4:2/1", 0, "0-2:0/1 3-4:2/1 5-9:0/1"),  # the higher state wins
        ("0-9:0/2", "3-4:2/1", 0, "0-9:0/2"),  # the more deliveries win first
        ("3-4:0/2", "0-9:4/1", 0, "0-2:4/1 3-4:0/2 5-9:4/1"),
        ("0-9:0/1", "9-12:2/2", 0, "0-8:0/1 9-12:2/2"),
        ("5-9:0/1", "0-5:2/2", 0, "0-5:2/2 6-9:0/1"),
        ("0-9:0/1 10-19:2/1", "5-14:4/5", 0, "0-4:0/1 5-14:4/5 15-19:2/1"),
        ("0-9:0/1", "", 4, "4-9:0/1"),
        ("0-9:0/1", "3-3:2/1", 10, ""),
    ],
)
def test_combining(stored: str, added: str, start: int, combined: str) -> None:  # GS-11
    assert combine_batches(batches(stored), batches(added), start) == batches(combined)
    assert combine_batches(batches(added), batches(stored), start) == batches(combined)
    assert combine_batches((), batches(f"{added} {stored}"), start) == batches(combined)


# --- bytes


def test_records_of_other_types_are_skipped() -> None:  # GS-14
    assert decode_share_state(b"\x00\x07abc", b"x") is None
    assert decode_share_state(b"\x00\x01\x02g" + bytes(20), None) is None


@pytest.mark.parametrize(("key", "value"), [(b"", b""), (b"\x00", b""), (b"\x00\x00\x05g", b""), (b"\x00\x00", None)])
def test_damaged_records(key: bytes, value: bytes | None) -> None:
    with pytest.raises(MalformedMessage):
        decode_share_state(key, value)


def test_a_version_of_later_times() -> None:
    store = Store()
    store.initialize()
    key, value = store.bytes_of(0)
    assert value is not None
    with pytest.raises(MalformedMessage, match="no version 1"):
        decode_share_state(key, b"\x00\x01" + value[2:])
