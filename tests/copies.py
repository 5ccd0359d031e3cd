"""Logs, copies of them as mirrors make them, and what a clone makes of a place in them: for any two clusters."""

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from confluent_kafka import Producer
from tests.acts import end_of
from tests.patience import until

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import OffsetAndMetadata, TopicPartition
from groupkeeper.operations.plans.builder import ALL_COMMITTED, Made, Policies
from groupkeeper.operations.plans.clones.builder import CloneRequest, Source, make_clone
from groupkeeper.operations.plans.model import Change

FIRST_MS = 1_700_000_000_000
PATIENCE_S = 30


class Item(NamedTuple):
    """A record to be written. `key` and `value` None: null. `number`: which one it is, for the tests."""

    number: int
    key: bytes | None
    value: bytes | None
    time_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


def items(count: int, *, per_ms: int = 4, first: int = 0) -> list[Item]:
    """Different records, several of each time; every tenth is a tombstone."""
    return [
        Item(
            number,
            b"k%d" % (number % 17),
            None if number % 10 == 9 else b"value %d" % number,
            FIRST_MS + number // per_ms,
            (("n", b"%d" % number),),
        )
        for number in range(first, first + count)
    ]


class Writer:
    """Of one topic's records, in transactions with `in_transactions`."""

    def __init__(self, servers: str, topic: str, in_transactions: bool = False, /, **properties: str) -> None:
        self._servers, self._topic = servers, topic
        self._is_transactional = in_transactions
        more = {"transactional.id": f"{topic}-{time.time_ns()}"} if in_transactions else {}
        self._producer = Producer(
            {"bootstrap.servers": servers, "linger.ms": 5, "batch.num.messages": 400, **more, **properties}
        )
        if in_transactions:
            self._producer.init_transactions(PATIENCE_S)

    def write(self, records: Iterable[Item], *, commits: bool = True, keeps_times: bool = True) -> None:
        before = 0
        if self._is_transactional:
            before = end_of(self._servers, self._topic)
            self._producer.begin_transaction()
        for one in records:
            when = one.time_ms if keeps_times else 0
            headers: list[tuple[str, str | bytes | None]] = list(one.headers)
            self._producer.produce(self._topic, one.value, one.key, 0, headers=headers, timestamp=when)
        assert self._producer.flush(PATIENCE_S) == 0
        if not self._is_transactional:
            return
        written = end_of(self._servers, self._topic)
        assert written > before
        (self._producer.commit_transaction if commits else self._producer.abort_transaction)(PATIENCE_S)
        until(lambda: end_of(self._servers, self._topic) > written)  # its marker may be written a little later


def write(servers: str, topic: str, records: Iterable[Item], **properties: str) -> None:
    Writer(servers, topic, **properties).write(records)


async def cloned(source: str, target: str, topic: str, offset: int, prefix: str | None = None) -> Change:
    """The change that a clone of a group at this offset of partition 0 plans."""
    made = await made_of(source, target, {TopicPartition(topic, 0): offset}, prefix)
    assert made.troubles == (), made.troubles
    (group,) = made.plan.groups
    (change,) = group.changes.values()
    assert change.after is not None
    return change


async def made_of(
    source: str, target: str, offsets: dict[TopicPartition, int], prefix: str | None = None, group: str = ""
) -> Made:
    group = group or f"g{time.time_ns()}"
    async with Admin(source) as here, Admin(target) as there:
        wanted = {tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()}
        (await here.alter_consumer_group_offsets(group, wanted)).all()
        groups = {group: group}
        return await make_clone(there, Source(here, prefix), CloneRequest(groups, ALL_COMMITTED, Policies(), FIRST_MS))


def checked(change: Change, offset: int, certainty: str) -> None:
    assert change.after is not None
    assert (change.after.offset, change.certainty) == (offset, certainty), change
    assert certainty in ("bounded", "time") or (change.skipped, change.replayed) == (0, 0), change


def without(records: Sequence[Item], *numbers: int) -> list[Item]:
    return [one for one in records if one.number not in numbers]
