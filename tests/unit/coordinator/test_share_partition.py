"""Which records of a share-partition are handed out, refused, and stored."""

import pytest

from groupkeeper.coordinator.share_partition.acquire import Acquired, Limits, Span, acquire
from groupkeeper.coordinator.share_partition.batch import DeliveryLimit, RecordState
from groupkeeper.coordinator.share_partition.partition import Acknowledgement, SharePartition
from groupkeeper.coordinator.share_state.state import StateBatch
from groupkeeper.protocol.errors import InvalidRecordState, InvalidRequest

ACCEPT, RELEASE, REJECT, RENEW, GAP = 1, 2, 3, 4, 0


def take(partition: SharePartition, *spans: Span, member: str = "m", **limits: int | bool) -> list[Acquired]:
    """Acquires out of the log's batches that end behind what can be acquired next."""
    offset = partition.next_fetch_offset()
    values = {
        "max_records": 1000,
        "is_strict": False,
        "batch_size": 1000,
        "max_in_flight": 2000,
        "max_delivery_count": 5,
        "deadline_ms": 1000,
    } | limits
    left = [span for span in spans if span.last >= offset]
    return acquire(partition, member, left, offset, Limits(**values))  # type: ignore[arg-type]


def acknowledge(
    partition: SharePartition, first: int, last: int, kind: int, *, limit: int = 5
) -> tuple[StateBatch, ...]:
    """Acknowledges and stores; what was stored."""
    acknowledgements = [Acknowledgement(first, last, [kind])]
    transition = partition.acknowledge("m", acknowledgements, limit=DeliveryLimit(limit), renewed_until_ms=9000)
    partition.complete(transition)
    return transition.batches


def ranges(acquired: list[Acquired]) -> list[tuple[int, int]]:
    return [(one.first_offset, one.last_offset) for one in acquired]


def test_batches_of_the_log_are_not_torn_apart() -> None:
    spans = [Span(0, 9), Span(10, 19), Span(20, 29)]
    assert ranges(take(SharePartition(0), *spans, max_records=12)) == [(0, 19)]
    assert ranges(take(SharePartition(0), *spans, max_records=12, is_strict=True)) == [(0, 11)]
    assert ranges(take(SharePartition(0), *spans, batch_size=5)) == [(0, 9), (10, 19), (20, 29)]
    assert ranges(take(SharePartition(25), *spans)) == [(25, 29)]


def test_the_more_often_delivered_the_fewer_at_once() -> None:
    # Of 512 records and 10 deliveries: five times all of them, then half, a quarter …, the last time one.
    partition = SharePartition(0)
    sizes = []
    for _ in range(10):
        acquired = take(partition, Span(0, 511), max_delivery_count=10)
        first, last = acquired[0].first_offset, acquired[-1].last_offset
        sizes.append(last - first + 1)
        acknowledge(partition, first, last, RELEASE, limit=10)
    assert sizes == [512, 512, 512, 512, 512, 256, 128, 64, 32, 1]
    # The first record is archived; the portion is still one of the batch as it was.
    assert (partition.start_offset, partition.next_fetch_offset()) == (1, 1)


def test_in_flight_offsets_are_limited() -> None:
    partition = SharePartition(0)
    assert ranges(take(partition, Span(0, 9), Span(10, 19), max_in_flight=10)) == [(0, 9)]
    assert not partition.can_acquire(10)
    assert take(partition, Span(10, 19), max_in_flight=10) == []
    acknowledge(partition, 3, 5, RELEASE)
    assert partition.can_acquire(10)
    assert ranges(take(partition, Span(0, 9), Span(10, 19), max_in_flight=10)) == [(3, 5)]
    acknowledge(partition, 0, 2, ACCEPT)
    assert ranges(take(partition, Span(10, 19), max_in_flight=10)) == [(10, 19)]


def test_what_compaction_removed_is_nobodys() -> None:
    partition = SharePartition(0, [StateBatch(0, 0, 0, 1), StateBatch(4, 4, 0, 1)])
    take(partition, Span(0, 0))
    assert take(partition, Span(3, 9)) == [Acquired(3, 3, 1), Acquired(4, 4, 2), Acquired(5, 9, 1)]


def test_only_changes_are_stored_and_neighbours_as_one() -> None:
    partition = SharePartition(0)
    take(partition, Span(0, 9))
    assert acknowledge(partition, 0, 9, RENEW) == ()
    acknowledgements = [Acknowledgement(0, 1, [ACCEPT, ACCEPT]), Acknowledgement(2, 5, [ACCEPT, GAP, REJECT, RELEASE])]
    transition = partition.acknowledge("m", acknowledgements, limit=DeliveryLimit(5))
    assert transition.batches == (StateBatch(0, 2, 2, 1), StateBatch(3, 4, 4, 1), StateBatch(5, 5, 0, 1))
    # What is stored with it: where the partition begins before the change, and how many of its records are done after.
    assert (partition.start_offset, partition.delivery_complete_count) == (0, 5)
    partition.complete(transition)
    assert (partition.start_offset, partition.next_fetch_offset()) == (5, 5)


@pytest.mark.parametrize(
    ("first", "last", "types", "error"),
    [
        (0, 20, [ACCEPT], InvalidRequest),
        (15, 20, [ACCEPT], InvalidRequest),
        (0, 9, [9], InvalidRequest),
        (0, 9, [ACCEPT, ACCEPT], InvalidRequest),
        (0, 9, [RENEW], InvalidRecordState),
        (0, 4, [ACCEPT], InvalidRecordState),
    ],
)
def test_what_cannot_be_acknowledged(first: int, last: int, types: list[int], error: type[Exception]) -> None:
    partition = SharePartition(0)
    take(partition, Span(0, 9))
    acknowledge(partition, 2, 3, ACCEPT)
    with pytest.raises(error):
        partition.acknowledge("m", [Acknowledgement(first, last, types)], limit=DeliveryLimit(5))
    assert partition.start_offset == 0
    assert partition.delivery_complete_count == 2


def test_a_new_leader_goes_on_where_something_is_left() -> None:
    stored = [StateBatch(5, 6, 2, 1), StateBatch(9, 9, 0, 2), StateBatch(10, 12, 4, 5)]
    partition = SharePartition(5, stored)
    assert (partition.start_offset, partition.end_offset, partition.next_fetch_offset()) == (7, 13, 7)
    assert take(partition, Span(0, 20)) == [Acquired(7, 8, 1), Acquired(9, 9, 3), Acquired(13, 20, 1)]


@pytest.mark.parametrize(("first", "last"), [(4, 4), (3, 5), (2, 4), (4, 7)])
def test_what_only_an_earlier_leader_acquired_cannot_be_acknowledged(first: int, last: int) -> None:
    """It was told to be done, and delivered again."""
    partition = SharePartition(0, [StateBatch(0, 2, 0, 1), StateBatch(6, 8, 0, 1)])
    acquire(partition, "m", [Span(0, 2)], 0, Limits(3, True, 10, 100, 5, 1000))
    with pytest.raises(InvalidRecordState):
        partition.acknowledge("m", [Acknowledgement(first, last, [ACCEPT])], limit=DeliveryLimit(5))
    assert [run.before for run in partition.runs()] == [None, None]


def test_an_acknowledgement_that_fails_after_the_last_lock_is_still_to_be_stored() -> None:
    partition = SharePartition(0)
    take(partition, Span(0, 3), max_delivery_count=1, deadline_ms=1000)
    acknowledgements = [Acknowledgement(0, 3, [ACCEPT])]
    failing = partition.acknowledge("m", acknowledgements, limit=DeliveryLimit(1))
    ended = partition.roll_back(failing, 1000, limit=DeliveryLimit(1))
    assert (ended.runs, ended.batches, partition.start_offset) == ((), (StateBatch(0, 3, 4, 1),), 4)
    assert partition.acknowledge("m", acknowledgements, limit=DeliveryLimit(1)).needs_storing


def test_so_is_one_that_the_start_offset_passes_later() -> None:
    """Its lock ended while records before it were open; their acknowledgement stored the start offset of then."""
    partition = SharePartition(0)
    take(partition, Span(0, 1), max_delivery_count=1, deadline_ms=2000)
    take(partition, Span(2, 3), max_delivery_count=1, deadline_ms=1000)
    partition.expire(1000, limit=DeliveryLimit(1))
    done = partition.acknowledge("m", [Acknowledgement(0, 1, [ACCEPT])], limit=DeliveryLimit(1))
    partition.stored(partition.start_offset)
    partition.complete(done)
    assert partition.start_offset == 4
    assert partition.acknowledge("m", [Acknowledgement(2, 3, [ACCEPT])], limit=DeliveryLimit(1)).needs_storing


def test_an_acknowledgement_behind_a_start_offset_that_is_not_stored_waits_for_it() -> None:
    """The last lock of a record ended, and that could not be stored: a restart would deliver it again."""
    partition = SharePartition(0)
    for _ in range(2):
        take(partition, Span(0, 3), max_delivery_count=2, deadline_ms=1000)
        expired = partition.expire(1000, limit=DeliveryLimit(2))
    assert (expired.batches, partition.start_offset) == ((StateBatch(0, 3, 4, 2),), 4)
    acknowledgements = [Acknowledgement(0, 3, [ACCEPT])]
    late = partition.acknowledge("m", acknowledgements, limit=DeliveryLimit(2))
    assert (late.runs, late.batches, late.needs_storing) == ((), (), True)
    partition.stored(partition.start_offset)
    assert not partition.acknowledge("m", acknowledgements, limit=DeliveryLimit(2)).needs_storing


def test_what_goes_to_a_dead_letter_queue_is_done_when_it_is_there() -> None:
    limit = DeliveryLimit(1, RecordState.ARCHIVING)
    partition = SharePartition(0)
    take(partition, Span(0, 9), max_delivery_count=1)
    said = partition.acknowledge("m", [Acknowledgement(0, 2, [REJECT]), Acknowledgement(3, 5, [ACCEPT])], limit=limit)
    assert partition.dead() == []  # it is not stored yet
    partition.complete(said)
    partition.complete(partition.release_member("m", limit))
    dead = partition.dead()
    assert dead == [(0, 2, 1, True), (6, 9, 1, False)]
    assert [batch.delivery_state for batch in partition.at_rest().batches] == [3, 2, 3]
    assert (partition.start_offset, partition.delivery_complete_count) == (0, 3)
    assert take(partition, Span(0, 9)) == []
    partition.move_start(1)
    assert partition.archive(dead).batches == (StateBatch(1, 2, 4, 1), StateBatch(6, 9, 4, 1))
    assert (partition.start_offset, partition.dead()) == (10, [])


def test_rejected_records_that_could_not_be_stored_are_given_back() -> None:
    limit = DeliveryLimit(2, RecordState.ARCHIVING)
    partition = SharePartition(0)
    take(partition, Span(0, 9))
    said = partition.acknowledge("m", [Acknowledgement(0, 9, [REJECT])], limit=limit)
    partition.roll_back(said, 500, limit)
    assert partition.dead() == []
    assert acknowledge(partition, 0, 9, ACCEPT) == (StateBatch(0, 9, 2, 1),)
