"""The journal of a team: a compacted Kafka topic of one partition, with the lines that a file has.

What is written at once is one text. It is cut into records, whose keys are ``<change id>/<text>/<number>/<count>``:
each key is written once, so compaction removes nothing. A text counts where all of its records are there.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.producing import produce
from groupkeeper.client.admin.types import NewTopic, OffsetSpec, TopicPartition
from groupkeeper.client.errors import ClientError
from groupkeeper.operations.errors import OperationRefused
from groupkeeper.operations.plans.journal import (
    ApplyResult,
    BeingUndone,
    ChangeJournal,
    Head,
    JournalUnreadable,
    JournalUnwritable,
    Pair,
    Summary,
    chunks,
    maker_of,
)
from groupkeeper.operations.times import utc_text
from groupkeeper.protocol.errors import KafkaError, UnknownTopicOrPartition
from groupkeeper.protocol.record import Record
from groupkeeper.protocol.record_batch import CorruptRecord, iter_headers, read_records, write_batch

SCHEME = "kafka://"
PATIENCE_MS = 10_000
CLAIM_MS = 5 * 60 * 1000
"""For how long an undo without an outcome, or a finished one, keeps others from undoing the same change."""

_BYTES_PER_RECORD = 512 * 1024
_MOST_REPLICAS = 3
_POLICY = "cleanup.policy"

T = TypeVar("T")


class UnfitTopic(OperationRefused):
    """The topic would lose changes, or has them in no order."""


class TopicJournal(ChangeJournal):
    """The topic of a ``kafka://`` address. ``open_admin`` makes a client of its cluster, and may raise ClientError.
    Each call connects, and blocks: callers on a loop use a thread.
    """

    def __init__(self, address: str, open_admin: Callable[[], Admin]) -> None:
        self._address = address
        self._open_admin = open_admin
        self._place = TopicPartition(split(address)[1], 0)

    @property
    def name(self) -> str:
        return self._address

    def begin(self, head: Head, groups: Iterable[tuple[str, Mapping[TopicPartition, Pair]]]) -> None:
        """The same as for a file. Raises BeingUndone where another undo of the same change is in the log before it."""
        some = list(groups)
        super().begin(head, some)
        rival = None if head.undoes is None else self._first_claim(head, {name for name, _ in some})
        if rival is not None:
            self.end(head.id, head.time_ms, len(some), ApplyResult.REFUSED)
            raise BeingUndone(
                f"{head.undoes} is being undone by {maker_of(rival.head)} since {utc_text(rival.head.time_ms)} "
                f"({rival.head.id}, {rival.result}): see 'groupkeeper history'. An undo without an outcome keeps "
                f"others off for {CLAIM_MS // 60_000} minutes"
            )

    def _first_claim(self, head: Head, groups: set[str]) -> Summary | None:
        """The undo of the same change in the same groups that is under way or was done, and is first in the log."""
        for one in self.summaries()[0]:
            if one.head.id == head.id:
                return None
            is_same = one.head.undoes == head.undoes and not groups.isdisjoint(one.names)
            is_live = one.result in (ApplyResult.UNFINISHED, ApplyResult.APPLIED) and one.undone_by is None
            if is_same and is_live and head.time_ms - one.head.time_ms < CLAIM_MS:
                return one
        return None

    def stamp(self) -> object:
        return self._read(lambda admin: self._ends(admin))[1]

    def _texts(self) -> Iterator[bytes]:
        async def read(admin: Admin) -> list[Record]:
            begin, end = await self._ends(admin)
            found: list[Record] = []

            def take(_: TopicPartition, batches: bytes) -> int | None:
                reached = None
                try:
                    for pos, header in iter_headers(batches):
                        reached = header.next_offset
                        if not header.is_control:
                            found.extend(read_records(batches, pos, header=header))
                except CorruptRecord:
                    return None
                return reached

            if begin < end:
                (await admin.read_logs({self._place: (begin, end)}, take)).all()
            return found

        for text in _joined(self._read(read)):
            yield from text.splitlines(keepends=True)

    async def _ends(self, admin: Admin) -> tuple[int, int]:
        """Where the log begins and ends; both 0 where there is no topic yet."""
        try:
            first = (await admin.list_offsets({self._place: OffsetSpec.earliest()})).result(self._place)
            last = (await admin.list_offsets({self._place: OffsetSpec.latest()})).result(self._place)
        except UnknownTopicOrPartition:
            return 0, 0
        return first.offset, last.offset

    def _append(self, lines: Iterable[Mapping[str, Any]]) -> None:
        some = list(lines)
        if not some:
            return
        text = b"".join(chunks(some))
        parts = [text[at : at + _BYTES_PER_RECORD] for at in range(0, len(text), _BYTES_PER_RECORD)]
        front = f"{some[0]['id']}/{secrets.token_hex(4)}"
        now_ms = time.time_ns() // 10**6

        async def write(admin: Admin) -> None:
            await self._make_fit(admin)
            for number, part in enumerate(parts):
                key = f"{front}/{number}/{len(parts)}".encode()
                batch = write_batch([Record(key, part, (), now_ms)], compression="gzip")
                await produce(admin._cluster, self._place, batch)

        try:
            self._on_a_thread(write)
        except (ClientError, KafkaError) as failure:
            raise JournalUnwritable(self._told(failure)) from failure

    async def _make_fit(self, admin: Admin) -> None:
        """Make the topic where there is none. Raises UnfitTopic."""
        topic = self._place.topic
        try:
            described = (await admin.describe_topics([topic])).result(topic)
        except UnknownTopicOrPartition:
            replicas = min(_MOST_REPLICAS, len((await admin.describe_cluster()).nodes))
            configs = {_POLICY: "compact", "min.insync.replicas": str(max(1, replicas - 1))}
            made = await admin.create_topics([NewTopic(topic, 1, replicas, configs=configs)], if_missing=True)
            made.all()
            return
        if len(described.partitions) != 1:
            raise UnfitTopic(f"the topic has {len(described.partitions)} partitions; a journal has one: name another")
        settings = (await admin.topic_settings([topic], [_POLICY])).done.get(topic, {})
        if settings.get(_POLICY, "compact") != "compact":
            raise UnfitTopic(
                f"the topic has {_POLICY}={settings[_POLICY]}, and would lose changes: kafka-configs --alter "
                f"--entity-type topics --entity-name {topic} --add-config {_POLICY}=compact"
            )

    def _read(self, work: Callable[[Admin], Awaitable[T]]) -> T:
        try:
            return self._on_a_thread(work)
        except (ClientError, KafkaError) as failure:
            raise JournalUnreadable(f"cannot read the journal {self._told(failure)}") from failure

    def _told(self, failure: Exception) -> str:
        return f"{self._address}: {type(failure).__name__}: {failure}" if str(failure) else (
            f"{self._address}: {type(failure).__name__}"
        )  # fmt: skip

    def _on_a_thread(self, work: Callable[[Admin], Awaitable[T]]) -> T:
        async def run() -> T:
            async with self._open_admin() as admin:
                return await work(admin)

        with ThreadPoolExecutor(1) as thread:  # the caller may be on a loop
            return thread.submit(lambda: asyncio.run(run())).result()


def split(address: str) -> tuple[str, str]:
    """The servers or the context, and the topic, of ``kafka://HOST:PORT,.../TOPIC`` or ``kafka://CONTEXT/TOPIC``; ""
    for what is missing.
    """
    where, _, topic = address.removeprefix(SCHEME).partition("/")
    return where, topic


def of_servers(address: str) -> TopicJournal:
    """The journal at ``kafka://HOST:PORT,.../TOPIC``."""
    return TopicJournal(address, lambda: Admin(split(address)[0], default_timeout_ms=PATIENCE_MS))


def _joined(records: Iterable[Record]) -> Iterator[bytes]:
    """The whole texts, in the order in which they became whole."""
    open_texts: dict[str, dict[int, bytes]] = {}
    whole = set()
    for record in records:
        name, number, count = _place_of(record.key)
        if record.value is None or count is None or name in whole:
            continue
        parts = open_texts.setdefault(name, {})
        parts[number] = record.value
        if len(parts) == count:
            whole.add(name)
            del open_texts[name]
            yield b"".join(parts[at] for at in sorted(parts))


def _place_of(key: bytes | None) -> tuple[str, int, int | None]:
    """Of a key the text, the number of the record in it, and their count; None: it is none of a journal."""
    try:
        name, number, count = (key or b"").decode().rsplit("/", 2)
        return name, int(number), int(count)
    except ValueError:
        return "", 0, None
