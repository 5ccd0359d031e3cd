"""The journal of a team: a compacted Kafka topic of one partition, with the lines that a file has.

Each write is one text. It is cut into records with the keys `<change id>/<text>/<number>/<count>`: each key is
written once, so compaction removes nothing. A text counts only if all of its records are there. A record with the key
`<change id>/claim` says that an undo is still under way.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.producer import produce
from groupkeeper.client.admin.types import NewTopic, OffsetSpec, TopicDescription, TopicPartition
from groupkeeper.client.errors import ClientError, UnexpectedResponse
from groupkeeper.coroutines import run_coroutine
from groupkeeper.operations.errors import OperationRefused
from groupkeeper.operations.plans import changes
from groupkeeper.operations.plans.journal import BeingUndone, ChangeJournal, JournalUnreadable, JournalUnwritable, Take
from groupkeeper.operations.times import utc_text
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.record import Record
from groupkeeper.protocol.record_batch import CorruptRecord, iter_headers, read_records, write_batch

SCHEME = "kafka://"
PATIENCE_MS = 10_000
CLAIM_MS = 5 * 60 * 1000
"""How long after its last claim an undo keeps others from undoing the same change, in ms of the brokers' clock."""

_BYTES_PER_RECORD = 512 * 1024
_CLAIM = "/claim"
_MOST_OPEN = 100
_MOST_WHOLE = 1000
_MOST_WRITTEN = 10_000
_MOST_REPLICAS = 3
_POLICY = "cleanup.policy"
_CLOCK = "message.timestamp.type"
_FIT = {_POLICY: ("compact", "would lose changes"), _CLOCK: ("LogAppendTime", "would compare the clocks of machines")}

T = TypeVar("T")


class UnfitTopic(OperationRefused):
    """The topic would lose changes, keeps no order, or doesn't store when they were written."""


class NotAllowed(OperationRefused):
    """An ACL is missing. The text names it, with the command that adds it."""


class _Log(NamedTuple):
    """The ends of a topic's log. `topic_id` None: there is no topic, or its brokers are too old."""

    topic_id: bytes | None
    first: int
    end: int


class TopicJournal(ChangeJournal):
    """The journal in the topic of a `kafka://` address. `open_admin` makes a client, and may raise ClientError.
    `claim_ms`: see CLAIM_MS. Methods that are no coroutines connect, and block: callers on a loop use a thread.
    """

    def __init__(self, address: str, open_admin: Callable[[], Admin], claim_ms: int = CLAIM_MS) -> None:
        self._address = address
        self._open_admin = open_admin
        self._claim_ms = claim_ms
        self._place = TopicPartition(split(address)[1], 0)
        self._admin: Admin | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        return self._address

    @property
    def claim_ms(self) -> int:
        return self._claim_ms

    def begin(self, head: changes.Head, groups: Iterable[tuple[str, Mapping[TopicPartition, changes.Pair]]]) -> None:
        """As for a file. Raises BeingUndone if the log has another undo of the same change before it."""
        some = list(groups)
        super().begin(head, some)
        if head.undoes is None:
            return
        try:
            rival = self._first_claim(head, {name for name, _ in some})
        except JournalUnreadable as problem:
            with contextlib.suppress(JournalUnwritable):
                self.end(head.id, head.time_ms, len(some), changes.ApplyResult.REFUSED)
            raise JournalUnwritable(
                f"whether somebody else undoes {head.undoes} is not known, as what was written cannot be read back: "
                f"{problem}"
            ) from problem
        if rival is not None:
            self.end(head.id, head.time_ms, len(some), changes.ApplyResult.REFUSED)
            raise BeingUndone(rival)

    def _first_claim(self, head: changes.Head, groups: set[str]) -> str | None:
        """The first undo in the log of the same change and groups that is under way or done, in words; None: it is this
        one.
        """
        known, reader = changes.KnownChanges(changes.MOST_CHANGES, changes.MOST_NAMES), _Reader(0)
        self._read(lambda admin: self._read_on(admin, reader, known.take))
        now_ms = reader.written_ms.get(head.id)
        if now_ms is None:  # its leader has changed, and does not have all yet
            raise JournalUnreadable(f"the journal {self._address} does not have {head.id} now")
        for one in known.summaries():
            if one.head.id == head.id:
                return None
            is_same = one.head.undoes == head.undoes and not groups.isdisjoint(one.names)
            is_live = (
                one.result in (changes.ApplyResult.UNFINISHED, changes.ApplyResult.APPLIED) and one.undone_by is None
            )
            if is_same and is_live and now_ms - reader.written_ms.get(one.head.id, 0) < self._claim_ms:
                who, when = changes.maker_of(one.head), utc_text(one.head.time_ms)
                if one.result is changes.ApplyResult.APPLIED:
                    return f"nothing was changed: {head.undoes} was undone by {who} at {when} ({one.head.id})"
                return (
                    f"nothing was changed: {head.undoes} is being undone by {who} since {when} ({one.head.id}): see "
                    "'groupkeeper history'. An undo whose program was killed blocks others for "
                    f"{self._claim_ms // 60_000} minutes"
                )
        return None

    def keep_claim(self, change_id: str) -> None:
        self._write([(change_id + _CLAIM, b"")])

    async def catch_up(self, known: changes.KnownChanges) -> bool:
        async def follow(admin: Admin) -> bool:
            log = await self._log(admin)
            reader = known.mark
            is_same = isinstance(reader, _Reader) and reader.topic_id == log.topic_id
            if not (is_same and isinstance(reader, _Reader) and log.first <= reader.at <= log.end):
                had_some = isinstance(reader, _Reader) and reader.at > 0
                known.clear()
                known.mark = reader = _Reader(log.first, topic_id=log.topic_id)
                if log.first == log.end:
                    return had_some
            if reader.at == log.end:
                return False
            await self._read_on(admin, reader, known.take, log.end)
            return True

        return await self._ask(follow)

    async def loaded(self, change_id: str, known: changes.KnownChanges) -> changes.Recorded | None:
        span = known.span(change_id)
        loading = changes.Loading(change_id)
        first, end = span or (0, None)
        reader = _Reader(first, change_id)
        await self._ask(lambda admin: self._read_on(admin, reader, loading.take, end))
        return loading.recorded()

    async def close(self) -> None:
        if self._admin is not None:
            admin, self._admin = self._admin, None
            await admin.close()

    async def _ask(self, work: Callable[[Admin], Awaitable[T]]) -> T:
        """Calls `work` with the client that stays open; it is closed after a failure."""
        try:
            async with self._opening:
                admin = self._admin = self._admin or await self._open_admin().__aenter__()
            return await work(admin)
        except (ClientError, KafkaError) as failure:
            await self.close()
            raise self._unreadable(failure) from failure

    def _visit(self, take: Take, only: str | None = None) -> None:
        self._read(lambda admin: self._read_on(admin, _Reader(0, only), take))

    async def _log(self, admin: Admin) -> _Log:
        """The topic's log; `first` and `end` are 0 without a topic."""
        try:
            described = await self._described(admin)
            first = (await admin.list_offsets({self._place: OffsetSpec.earliest()})).result(self._place)
            last = (await admin.list_offsets({self._place: OffsetSpec.latest()})).result(self._place)
        except errors.UnknownTopicOrPartition:
            return _Log(None, 0, 0)
        return _Log(described.topic_id, first.offset, last.offset)

    async def _described(self, admin: Admin) -> TopicDescription:
        with self._needing("DESCRIBE", admin):
            return (await admin.describe_topics([self._place.topic])).result(self._place.topic)

    @contextlib.contextmanager
    def _needing(self, operation: str, admin: Admin) -> Iterator[None]:
        """Names the missing ACL if brokers refuse in the block."""
        try:
            yield
        except (errors.TopicAuthorizationFailed, errors.ClusterAuthorizationFailed) as failure:
            topic, who = self._place.topic, admin.principal or "User:NAME"
            raise NotAllowed(
                f"{admin.principal or 'this user'} needs {operation} on the topic: kafka-acls --add "
                f"--allow-principal {who} --operation {operation.title().replace('_', '')} --topic {topic}"
            ) from failure

    async def _read_on(self, admin: Admin, reader: _Reader, take: Take, end: int | None = None) -> None:
        """Reads piece by piece, on a thread, up to `end`; None: the current end."""
        if end is None:
            log = await self._log(admin)
            end, reader.at = log.end, max(reader.at, log.first)
        while reader.at < end:
            pieces: list[bytes] = []

            def keep(_: TopicPartition, batches: bytes, pieces: list[bytes] = pieces) -> int | None:
                pieces.append(batches)
                return _end_of(batches)

            with self._needing("READ", admin):
                (await admin.read_logs({self._place: (reader.at, reader.at + 1)}, keep)).all()
            if not pieces:  # compaction has removed the rest
                reader.at = end
            for piece in pieces:
                await asyncio.to_thread(reader.read, piece, take)

    def _append(self, lines: Iterable[Mapping[str, Any]]) -> None:
        some = list(lines)
        if not some:
            return
        text = b"".join(changes.chunks(some))
        parts = [text[at : at + _BYTES_PER_RECORD] for at in range(0, len(text), _BYTES_PER_RECORD)]
        front = f"{some[0]['id']}/{secrets.token_hex(4)}"
        self._write([(f"{front}/{number}/{len(parts)}", part) for number, part in enumerate(parts)])

    def _write(self, parts: Sequence[tuple[str, bytes]]) -> None:
        """Raises JournalUnwritable."""
        now_ms = time.time_ns() // 10**6

        async def write(admin: Admin) -> None:
            await self._make_fit(admin)
            for key, part in parts:
                batch = write_batch([Record(key.encode(), part, (), now_ms)], compression="gzip")
                with self._needing("WRITE", admin):
                    await produce(admin._cluster, self._place, batch)

        try:
            self._on_a_thread(write)
        except (ClientError, KafkaError) as failure:
            raise JournalUnwritable(self._told(failure)) from failure

    async def _make_fit(self, admin: Admin) -> None:
        """Creates the topic if it is missing. Raises UnfitTopic."""
        topic = self._place.topic
        try:
            described = await self._described(admin)
        except errors.UnknownTopicOrPartition:
            replicas = min(_MOST_REPLICAS, len((await admin.describe_cluster()).nodes))
            configs = {name: value for name, (value, _) in _FIT.items()}
            configs["min.insync.replicas"] = str(max(1, replicas - 1))
            made = await admin.create_topics([NewTopic(topic, 1, replicas, configs=configs)], if_missing=True)
            with self._needing("CREATE", admin):
                made.all()
            return
        if len(described.partitions) != 1:
            raise UnfitTopic(f"the topic has {len(described.partitions)} partitions; a journal has one: name another")
        settings = (await admin.topic_settings([topic], list(_FIT))).done.get(topic, {})
        for name, (value, why) in _FIT.items():
            if settings.get(name, value) != value:
                raise UnfitTopic(
                    f"the topic has {name}={settings[name]}, and {why}: kafka-configs --alter "
                    f"--entity-type topics --entity-name {topic} --add-config {name}={value}"
                )

    def _read(self, work: Callable[[Admin], Awaitable[T]]) -> T:
        try:
            return self._on_a_thread(work)
        except (ClientError, KafkaError) as failure:
            raise self._unreadable(failure) from failure

    def _unreadable(self, failure: Exception) -> JournalUnreadable:
        return JournalUnreadable(f"cannot read the journal {self._told(failure)}")

    def _told(self, failure: Exception) -> str:
        return f"{self._address}: {type(failure).__name__}: {failure}".removesuffix(": ")

    def _on_a_thread(self, work: Callable[[Admin], Awaitable[T]]) -> T:
        async def run() -> T:
            async with self._open_admin() as admin:
                return await work(admin)

        with ThreadPoolExecutor(1) as thread:  # the caller may be on a loop
            return thread.submit(lambda: run_coroutine(run())).result()


class _Reader:
    """Joins records to texts, in the order in which the texts become complete. `only`: the texts of one change.

    It keeps the latest incomplete texts (a killed writer leaves them) and the names of the latest complete ones, as a
    record may be there twice.

    Attributes:
        at: the offset of the next record to read.
        written_ms: when the last record of each change was written, by the clock of the topic.
    """

    def __init__(self, at: int, only: str | None = None, topic_id: bytes | None = None) -> None:
        self.at = at
        self.topic_id = topic_id
        self.written_ms: OrderedDict[str, int] = OrderedDict()
        self._only = only
        self._open: OrderedDict[str, dict[int, Record]] = OrderedDict()
        self._whole: OrderedDict[str, None] = OrderedDict()

    def read(self, batches: bytes, take: Take) -> None:
        """Passes the lines of completed texts to `take`. Raises UnexpectedResponse."""
        try:
            for pos, header in iter_headers(batches):
                if header.next_offset > self.at:
                    if not header.is_control:
                        for record in read_records(batches, pos, header=header):
                            self._add(record, take)
                    self.at = header.next_offset
        except CorruptRecord as problem:
            raise UnexpectedResponse(f"the batches from offset {self.at} on cannot be read: {problem}") from None

    def _add(self, record: Record, take: Take) -> None:
        name, number, count = _place_of(record.key)
        change_id = name.partition("/")[0]
        if record.value is None or self._only not in (None, change_id):
            return
        if count is not None or name.endswith(_CLAIM):
            self.written_ms[change_id] = record.timestamp
            self.written_ms.move_to_end(change_id)
            _keep(self.written_ms, _MOST_WRITTEN)
        if count is None or name in self._whole:
            return
        records = self._open.setdefault(name, {})
        records[number] = record
        if len(records) < count:
            _keep(self._open, _MOST_OPEN)
            return
        del self._open[name]
        self._whole[name] = None
        _keep(self._whole, _MOST_WHOLE)
        offsets = [each.offset for each in records.values()]
        span = (min(offsets), max(offsets) + 1)
        text = b"".join(records[each].value or b"" for each in sorted(records))
        for line in text.splitlines(keepends=True):
            take(line, span)


def _keep(found: OrderedDict[str, Any], most: int) -> None:
    """Drops all but the latest."""
    while len(found) > most:
        found.popitem(last=False)


def _end_of(batches: bytes) -> int | None:
    """The offset after the last whole batch; None: there is none that can be read."""
    end = None
    with contextlib.suppress(CorruptRecord):
        for _, header in iter_headers(batches):
            end = header.next_offset
    return end


def split(address: str) -> tuple[str, str]:
    """The servers or the context, and the topic, of `kafka://HOST:PORT,.../TOPIC` or `kafka://CONTEXT/TOPIC`; ""
    for a missing part.
    """
    where, _, topic = address.removeprefix(SCHEME).partition("/")
    return where, topic


def _place_of(key: bytes | None) -> tuple[str, int, int | None]:
    """The text's name in a record's key, the record's number in it, and the count; None: it is no part of a text."""
    text = (key or b"").decode(errors="replace")
    try:
        name, number, count = text.rsplit("/", 2)
        return name, int(number), int(count)
    except ValueError:
        return text, 0, None
