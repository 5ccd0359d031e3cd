"""How long records have waited, of logs with gaps, markers, and times to come."""

import time
from collections.abc import Iterator

import pytest
from tests.acts import cut, make_topic
from tests.times_and_transactions import FIRST_MS, producer_of, send, wait_until_it_ends_at, write_in_transactions
from tests.unit.live.views import row

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import Position
from groupkeeper.live.model import NOTHING_WAITS, Wait, WaitSum
from groupkeeper.live.waits import Waits, longest
from groupkeeper.operations.lag import PartitionLag, sum_by_group
from groupkeeper.protocol.errors import LeaderNotAvailable
from groupkeeper.testing.background import BackgroundBroker

NOW_MS = time.time_ns() // 1_000_000
TIMES = [NOW_MS - 60_000, NOW_MS - 50_000, NOW_MS - 40_000, NOW_MS + 3_600_000]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with BackgroundBroker() as broker:
        servers = broker.bootstrap_servers
        make_topic(servers, "plain")
        send(producer_of(servers), "plain", TIMES)
        make_topic(servers, "cut")
        send(producer_of(servers), "cut", TIMES)
        cut(servers, "cut", 2)
        make_topic(servers, "transactions")
        write_in_transactions(servers, "transactions", lambda _: True, 2)  # five records and a marker, twice
        make_topic(servers, "aborted")
        write_in_transactions(servers, "aborted", lambda number: number == 0, 3)
        make_topic(servers, "compacted", **{"cleanup.policy": "compact"})
        yield servers


async def wait_of(servers: str, of: PartitionLag) -> Wait:
    waits = Waits()
    async with Admin(servers) as admin:
        await waits.look(admin, {"g": [of]}, NOW_MS, within_s=10)
    return waits.of(of, NOW_MS)


async def test_the_age_of_the_next_record(servers: str) -> None:
    assert (await wait_of(servers, row("plain", 0, 1, 4))).lag_ms == 50_000
    assert (await wait_of(servers, row("plain", 0, 4, 4))) == NOTHING_WAITS


async def test_where_a_clock_was_ahead_a_record_waits_since_it_was_seen(servers: str) -> None:
    waits, of = Waits(), row("plain", 0, 3, 4)  # its timestamp is in an hour
    async with Admin(servers) as admin:
        await waits.look(admin, {"g": [of]}, NOW_MS, within_s=10)
        first = waits.of(of, NOW_MS)
        assert (first.lag_ms, first.is_waiting) == (None, True)
        for later_ms in (60_000, 4_000_000):
            await waits.look(admin, {"g": [of]}, NOW_MS + later_ms, within_s=10)
            wait = waits.of(of, NOW_MS + later_ms)
            assert (wait.lag_ms, wait.is_waiting, wait.is_estimated) == (later_ms, True, True)


async def test_a_rest_of_markers_does_not_wait_however_long_it_is_watched(servers: str) -> None:
    waits, before, after = Waits(), row("transactions", 0, 11, 11), row("transactions", 0, 11, 12)
    async with Admin(servers) as admin:
        await waits.look(admin, {"g": [before]}, NOW_MS, within_s=10)
        for later_ms in (0, 15_000, 999_000):
            await waits.look(admin, {"g": [after]}, NOW_MS + later_ms, within_s=10)
            assert waits.of(after, NOW_MS + later_ms) == NOTHING_WAITS


async def test_below_the_start_of_an_empty_log_nothing_waits(servers: str) -> None:
    assert await wait_of(servers, row("cut", 0, 0, 4, start=4)) == NOTHING_WAITS


async def test_what_was_removed_does_not_wait(servers: str) -> None:
    assert (await wait_of(servers, row("cut", 0, 0, 4, start=2))).lag_ms == 40_000


async def test_markers_are_nothing_to_wait_for(servers: str) -> None:
    # The log ended with the first marker at that instant, whatever came after it.
    assert (await wait_of(servers, row("transactions", 0, 5, 6))) == NOTHING_WAITS
    assert (await wait_of(servers, row("transactions", 0, 5, 7))).lag_ms is not None
    assert (await wait_of(servers, row("transactions", 0, 5, 7))).lag_ms != 0


async def test_aborted_records_are_not_readable(servers: str) -> None:
    assert (await wait_of(servers, row("aborted", 0, 0, 18))).lag_ms == NOW_MS - FIRST_MS
    assert await wait_of(servers, row("aborted", 0, 6, 18)) == NOTHING_WAITS  # after the first five, and its marker


async def wait_at(servers: str, of: PartitionLag, at_ms: int, short_ms: int) -> Wait:
    waits = Waits(short_ms=short_ms)
    async with Admin(servers) as admin:
        await waits.look(admin, {"g": [of]}, at_ms, within_s=10)
    return waits.of(of, at_ms)


async def test_whether_a_young_record_was_aborted_matters_to_a_shorter_limit(servers: str) -> None:
    rest = row("aborted", 0, 6, 18)
    assert (await wait_at(servers, rest, FIRST_MS + 30_000, 60_000)).lag_ms != 0
    for short_ms in (10_000, 0):
        assert await wait_at(servers, rest, FIRST_MS + 30_000, short_ms) == NOTHING_WAITS


async def test_aborted_records_do_not_wait_where_a_clock_was_ahead(servers: str) -> None:
    assert await wait_at(servers, row("aborted", 0, 6, 18), FIRST_MS - 3_600_000, 60_000) == NOTHING_WAITS


async def test_what_a_producer_may_still_commit_is_to_be_read(servers: str) -> None:
    make_topic(servers, "open")
    write_in_transactions(servers, "open", lambda _: False, 1)
    producer = producer_of(servers, **{"transactional.id": "open"})
    producer.init_transactions(30)
    producer.begin_transaction()
    send(producer, "open", [FIRST_MS + 7000])
    waits = Waits()
    async with Admin(servers) as admin:
        of = row("open", 0, 0, 7)
        await waits.look(admin, {"g": [of]}, NOW_MS, within_s=10)
        wait = waits.of(of, NOW_MS)
        assert wait.holder is not None
        assert (wait.holder.transactional_id, wait.holder.tp) == ("open", ("open", 0))
        assert wait == Wait(NOW_MS - FIRST_MS - 7000, held_at=6, holder=wait.holder)
        at_it = row("open", 0, 6, 7)
        await waits.look(admin, {"g": [of, at_it]}, NOW_MS, within_s=10)
        assert waits.of(at_it, NOW_MS) == wait
        never = waits.of(row("open", 0, None, 7), NOW_MS)
        assert (never.lag_ms, never.held_at, never.holder) == (None, 6, wait.holder)
        producer.abort_transaction(30)
        wait_until_it_ends_at(servers, "open", 8)
        of = row("open", 0, 0, 8)
        await waits.look(admin, {"g": [of]}, NOW_MS, within_s=10)
        assert waits.of(of, NOW_MS) == NOTHING_WAITS
        send(producer_of(servers), "open", [NOW_MS - 5000])
        of = row("open", 0, 0, 9)
        await waits.look(admin, {"g": [of]}, NOW_MS, within_s=10)
        assert waits.of(of, NOW_MS) == Wait(5000)
        await waits.look(admin, {"g": [row("open", 0, 8, 9)]}, NOW_MS, within_s=10)
        assert waits.of(row("open", 0, 8, 9), NOW_MS) == Wait(5000)


async def test_a_log_without_a_commit_may_have_nothing_to_read(servers: str) -> None:
    """Markers and aborted records are no reason to ask where a group begins. They count as offsets of the log, as in
    commands, which do not read logs.
    """
    make_topic(servers, "unread")
    write_in_transactions(servers, "unread", lambda _: False, 1)
    waits = Waits()
    async with Admin(servers) as admin:
        for written, has_records in ((6, False), (7, True)):
            of = row("unread", 0, None, written)
            assert waits.read(of).has_open_start  # by what is known before
            await waits.look(admin, {"g": [of]}, NOW_MS, within_s=10)
            found = waits.read(of)
            assert (found.has_open_start, found.in_log) == (has_records, written)
            sums = sum_by_group("g", [found])
            assert (sums.open_starts, sums.uncommitted) == (has_records, written)
            assert waits.of(found, NOW_MS).lag_ms is None
            send(producer_of(servers), "unread", [NOW_MS])


async def test_a_topic_that_was_made_again_has_other_records(servers: str) -> None:
    make_topic(servers, "again")
    send(producer_of(servers), "again", [FIRST_MS, FIRST_MS])
    waits = Waits()
    async with Admin(servers) as admin:
        await waits.look(admin, {"g": [row("again", 0, 0, 2)]}, NOW_MS, within_s=10)
        assert waits.of(row("again", 0, 0, 2), NOW_MS).lag_ms == NOW_MS - FIRST_MS
        (await admin.delete_topics(["again"])).all()
        make_topic(servers, "again")
        send(producer_of(servers), "again", [NOW_MS - 7000])
        await waits.look(admin, {"g": [row("again", 0, 0, 1)]}, NOW_MS + 1, within_s=10)
        assert waits.of(row("again", 0, 0, 1), NOW_MS + 1).lag_ms == 7001


async def test_records_that_are_kept_have_no_margin(servers: str) -> None:
    wait = await wait_of(servers, row("plain", 0, 1, 4))  # retention.ms is -1
    assert (wait.margin_ms, wait.is_margin_known) == (None, True)


def test_sums_are_at_least_what_is_known() -> None:
    lagging, unknown = row("t", 0, 5), row("t", 1, 5, None)._replace(failure=LeaderNotAvailable())
    assert longest([lagging, unknown], [Wait(9000, True, 5), Wait(None)]) == WaitSum(9000, 1, 1, 5, 1)
    assert longest([lagging, unknown], [NOTHING_WAITS, Wait(None)]) == WaitSum(None, 0, 1)
    assert longest([lagging, row("t", 1, None)], [NOTHING_WAITS, Wait(None)]) == WaitSum(0)
    assert longest([lagging, lagging], [Wait(5, False, 70), Wait(9, False, 60)]) == WaitSum(9, 0, 0, 60, 2)
    assert longest([lagging, lagging], [Wait(0), NOTHING_WAITS]) == WaitSum(0, waiting=1)
    assert longest([], []) == WaitSum(None)


async def test_the_first_record_that_compaction_left_is_the_next() -> None:
    settings = dict.fromkeys(("log.cleaner.backoff.ms", "log.retention.check.interval.ms"), "10")
    settings |= {"log.segment.delete.delay.ms": "0", "log.initial.task.delay.ms": "0"}
    with BackgroundBroker(properties=settings) as broker:
        compacts = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"}
        make_topic(broker.bootstrap_servers, "keys", **compacts, **{"max.compaction.lag.ms": "1"})
        producer = producer_of(broker.bootstrap_servers)
        for number in range(20):
            producer.produce("keys", b"v", b"same" if number < 15 else b"%d" % number, timestamp=NOW_MS - 900 + number)
        assert producer.flush(20) == 0
        producer.produce("keys", b"v", b"end", timestamp=NOW_MS)  # the segment before it is closed, and compacted
        assert producer.flush(20) == 0
        at = Position("keys", 0, 3)
        async with Admin(broker.bootstrap_servers) as admin:
            deadline = time.monotonic() + 40
            while (found := (await admin.first_records([at])).all()[at]) is None or found.offset < 14:
                assert time.monotonic() < deadline
        wait = await wait_of(broker.bootstrap_servers, row("keys", 0, 3, 21))
        assert (wait.lag_ms, wait.is_waiting, wait.margin_ms) == (900 - 14, True, None)
