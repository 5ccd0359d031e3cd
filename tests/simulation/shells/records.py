"""What producers and readers of one partition know: Produce and Fetch, plain and in transactions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.compression import CorruptRecord
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.messages.fetch_response import PartitionData
from groupkeeper.protocol.record_batch import Record, iter_headers, read_end_transaction, read_records, write_batch

if TYPE_CHECKING:
    from tests.unit.broker.peer import Peer

    from groupkeeper.protocol.record_batch import BatchHeader

TOPIC = "records"
UNCOMMITTED, COMMITTED = 0, 1
_FETCHED_BYTES = 2_000


class Violation(AssertionError):
    """Something is not as a client was told."""


class Records:
    """What is known of the records of one partition, over all lives of the broker.

    Attributes:
        acknowledged: values by offset; they are there for good.
        committed: values of transactions that were committed; readers of committed records get each of them once.
        hidden: values of transactions that were not committed; readers of committed records get none of them.
    """

    def __init__(self) -> None:
        self.acknowledged: dict[int, bytes] = {}
        self.committed: set[bytes] = set()
        self.hidden: set[bytes] = set()
        self._sent = 0
        self._seen: dict[int, bytes | None] = {}
        self._positions = {UNCOMMITTED: 0, COMMITTED: 0}
        self._epochs_repeat = False
        self._has_holes = False
        self._first = 0

    def lose_power(self) -> None:
        """Records may be gone, and so may the ends of transactions: those of any may be visible or not.

        The epochs of producers may be drawn again, too. The log takes the first batch of such a one for a batch that it
        has already, as in Apache Kafka.
        """
        self._has_holes = True
        self.acknowledged.clear()
        self._seen.clear()
        self.lose_transactions()

    def lose_transactions(self) -> None:
        """The ends of transactions may be gone, and epochs be drawn again."""
        self._epochs_repeat = True
        self.committed.clear()
        self.hidden.clear()

    def lose(self, batch: BatchHeader) -> None:
        """This batch is damaged. If it was the last one, its offsets may be used again."""
        self._has_holes = True
        for offset in range(batch.base_offset, batch.next_offset):
            self.acknowledged.pop(offset, None)
            self._seen.pop(offset, None)
        self._positions = {one: min(at, batch.base_offset) for one, at in self._positions.items()}

    def begin_at(self, offset: int) -> None:
        """Where the log begins after that, as the first segments may be gone, too."""
        self._first = offset
        self._positions = dict.fromkeys(self._positions, offset)

    # --- producers

    def _new_values(self, count: int) -> list[bytes]:
        self._sent += count
        return [b"%d" % number for number in range(self._sent - count, self._sent)]

    async def produce(self, peer: Peer, chance: random.Random) -> int:
        """Some records without a transaction; returns the error code."""
        values = self._new_values(chance.randint(1, 3))
        return await self._send(peer, None, values, write_batch([Record(None, value) for value in values]))

    async def produce_in(self, peer: Peer, name: str, producer_id: int, epoch: int) -> tuple[list[bytes], int]:
        """Records of a transaction that has just begun; returns them, hidden up to its end, and the error code."""
        values = self._new_values(2)
        self.hidden.update(values)
        topics = [m.AddPartitionsToTxnTopic(TOPIC, [0])]
        request = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
        )
        (topic,) = (await peer.ask(request, 3)).results_by_topic_v3_and_below
        code = topic.results_by_partition[0].partition_error_code
        if code:
            return values, code
        batch = write_batch(
            [Record(None, value) for value in values],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=0,
            is_transactional=True,
        )
        return values, await self._send(peer, name, values, batch)

    async def _send(self, peer: Peer, name: str | None, values: list[bytes], batch: bytes) -> int:
        topics = [m.TopicProduceData(TOPIC, partition_data=[m.PartitionProduceData(0, batch)])]
        answer = await peer.ask(m.ProduceRequest(name, -1, 1_000, topics), 10)
        told: m.PartitionProduceResponse = answer.responses[0].partition_responses[0]
        if told.error_code == errors.NONE and (name is None or not self._epochs_repeat):
            self.acknowledged.update(enumerate(values, told.base_offset))
        return told.error_code

    def ending(self, values: list[bytes]) -> None:
        """The end of a transaction is asked for: from now on it may be committed."""
        self.hidden.difference_update(values)

    def ended(self, values: list[bytes], code: int, *, is_commit: bool, is_certain: bool) -> None:
        """How that was answered. Not `is_certain`: it may have happened all the same."""
        if code == errors.NONE and is_commit:
            self.committed.update(values)
        elif not is_commit or is_certain:
            self.hidden.update(values)

    # --- readers

    async def read(self, peer: Peer, isolation: int, chance: random.Random) -> int:
        """One Fetch of a reader that continues where it was, or at times begins anew before; returns the error code."""
        position = self._positions[isolation]
        if chance.random() < 0.2:
            position = chance.randint(self._first, position)
        code, position, _ = await self._fetch(peer, isolation, position)
        self._positions[isolation] = position
        return code

    async def check_all(self, peer: Peer, *, ends_are_known: bool) -> None:
        """Reads all there is, when nothing fails and no transaction is open; not `ends_are_known`: one may hang."""
        there = dict(await self._read_all(peer, UNCOMMITTED))
        lost = {offset: value for offset, value in self.acknowledged.items() if there.get(offset) != value}
        if lost:
            raise Violation(f"acknowledged records are lost: {lost}")
        visible = [value for _, value in await self._read_all(peer, COMMITTED)]
        if ends_are_known and not self.committed.issubset(visible):
            raise Violation(f"committed records are lost: {sorted(self.committed.difference(visible))}")
        if len(set(visible)) < len(visible):
            raise Violation("committed records are there twice")

    async def _read_all(self, peer: Peer, isolation: int) -> list[tuple[int, bytes]]:
        position = self._first
        found: list[tuple[int, bytes]] = []
        while True:
            code, end, some = await self._fetch(peer, isolation, position)
            if code:
                raise Violation(f"records can't be read: error {code}")
            if end == position:
                return found
            position = end
            found += some

    async def _fetch(self, peer: Peer, isolation: int, position: int) -> tuple[int, int, list[tuple[int, bytes]]]:
        """The error code, the position behind what was read, and the records that a client hands on."""
        wanted = FetchTopic(TOPIC, partitions=[FetchPartition(0, -1, position, partition_max_bytes=_FETCHED_BYTES)])
        request = m.FetchRequest(isolation_level=isolation, topics=[wanted])
        data = (await peer.ask(request, 11)).responses[0].partitions[0]
        if data.error_code:
            if data.error_code == errors.CorruptMessage.code and self._has_holes:
                return errors.NONE, position + 1, []
            if data.error_code == errors.OffsetOutOfRange.code:
                raise Violation(f"the log does not reach offset {position}, up to which it was read")
            return data.error_code, position, []
        read = []
        try:
            found = list(_handed_on(data, position))
        except CorruptRecord as error:
            raise Violation(f"a reader at {position} gets damaged records: {error}") from error
        for offset, after, value, is_visible in found:
            if offset != position and not self._has_holes:
                raise Violation(f"a reader at {position} gets {offset} next")
            if self._seen.setdefault(offset, value) != value:
                raise Violation(f"offset {offset} was {self._seen[offset]!r} and is {value!r}")
            position = after
            if value is None or (isolation == COMMITTED and not is_visible):
                continue
            if isolation == COMMITTED and value in self.hidden:
                raise Violation(f"a reader of committed records gets {value!r}, which was not committed")
            read.append((offset, value))
        return errors.NONE, position, read


def _handed_on(data: PartitionData, position: int) -> Iterator[tuple[int, int, bytes | None, bool]]:
    """From a position on: offset, the offset behind, value (None: the end of a transaction), and whether no aborted
    transaction has it, as a client finds out from the answer.
    """
    records = data.records or b""
    aborted = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or ())
    hidden: set[int] = set()
    for at, header in iter_headers(records):
        while aborted and aborted[0][0] <= header.last_offset:
            hidden.add(aborted.pop(0)[1])
        for record in read_records(records[at : at + header.size_in_bytes]):
            value: bytes | None = record.value
            if header.is_control:
                marker = read_end_transaction(record)
                if marker is not None and not marker.is_commit:
                    hidden.discard(header.producer_id)
                value = None
            if record.offset >= position:
                is_visible = not (header.is_transactional and header.producer_id in hidden)
                yield record.offset, record.offset + 1, value, is_visible
