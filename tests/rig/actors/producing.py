"""Producers of confluent-kafka that write down each record's place, as their delivery reports tell it."""

import time
from collections import deque
from functools import partial
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.rig.actors.performing import CLIENT, PATIENCE_S, Pace, Performer, ends_of, partitions_of
from tests.rig.facts import Cut, Produced, TransactionEnded, now
from tests.rig.story import Mirror, Producer

OLD_MS = 10 * 86_400_000
TRANSACTION_S = 3.0


class ProducerThread(Performer):
    actor: Producer

    def begin(self) -> None:
        actor = self.actor
        self._pace = Pace(actor.rate)
        self._number = 0
        self._base_ms = time.time_ns() // 1_000_000
        self._partitions = self._count(actor.cluster)
        self._transaction: str | None = None
        self._transaction_until = 0.0
        self._transactions = 0
        self._touched: dict[int, int] = {}
        self._records = 0
        self._pauses = 0
        self._producer = confluent_kafka.Producer(self._settings())
        if actor.kind == "transactional":
            self._producer.init_transactions(PATIENCE_S)
        self._copier: confluent_kafka.Producer | None = None
        self._held: deque[tuple[int, int, int, bytes | None, bytes | None]] = deque()
        if actor.mirror is not None:
            self._begin_mirror(actor.mirror)

    def _count(self, cluster: str) -> int:
        admin = AdminClient({"bootstrap.servers": self.servers[cluster], **CLIENT})
        return len(partitions_of(admin, self.actor.topic))

    def _settings(self) -> dict[str, Any]:
        actor = self.actor
        settings: dict[str, Any] = {
            "bootstrap.servers": self.servers[actor.cluster],
            "client.id": actor.name,
            "linger.ms": actor.linger_ms,
            "compression.type": actor.codec,
            "batch.size": 1_000_000,
            "acks": "all",
            "message.max.bytes": 2_000_000,
            **CLIENT,
        }
        if actor.kind == "plain":
            settings["retries"] = 0  # a record is there once, or it is not known
        else:
            settings["enable.idempotence"] = True
        if actor.kind == "transactional":
            settings |= {"transactional.id": f"rig {actor.name}", "transaction.timeout.ms": 600_000}
        return settings

    def _begin_mirror(self, mirror: Mirror) -> None:
        settings = self._settings()
        settings.pop("transactional.id", None)
        settings.pop("transaction.timeout.ms", None)
        settings |= {"bootstrap.servers": self.servers[mirror.cluster], "enable.idempotence": True}
        settings.pop("retries", None)
        self._copier = confluent_kafka.Producer(settings)
        self._copied_partitions = self._count(mirror.cluster)
        for place in range(self._copied_partitions):
            for number in range(mirror.shift):
                note = self._note_of(mirror.cluster, -1 - number, None, False, None, b"old")
                self._copier.produce(self.actor.topic, b"old", partition=place, on_delivery=note,
                                     timestamp=self._base_ms - OLD_MS + number)  # fmt: skip
        self._copier.flush(PATIENCE_S)
        if mirror.is_cut and mirror.shift:
            self._cut(mirror)

    def _cut(self, mirror: Mirror) -> None:
        admin = AdminClient({"bootstrap.servers": self.servers[mirror.cluster], **CLIENT})
        wanted = [TopicPartition(self.actor.topic, place, mirror.shift) for place in range(self._copied_partitions)]
        began = now()
        for place, deleted in admin.delete_records(wanted).items():
            start = deleted.result(PATIENCE_S).low_watermark
            self.notebook.write(Cut(mirror.cluster, place.topic, place.partition, start, began, now()))

    def step(self) -> None:
        self._producer.poll(min(self._pace.wait_s(), 0.05))
        if self._copier is not None:
            self._copier.poll(0)
        if self._pace.wait_s() > 0:
            return
        self._pace.take()
        if self.actor.kind == "transactional":
            self._keep_transaction()
        self._send()

    def _keep_transaction(self) -> None:
        if self._transaction is not None and time.monotonic() > self._transaction_until:
            self._end_transaction()
        if self._transaction is None:
            self._producer.begin_transaction()
            self._transactions += 1
            self._transaction = f"{self.actor.name} {self._transactions}"
            self._transaction_until = time.monotonic() + self.rng.uniform(0.1, TRANSACTION_S)

    def _end_transaction(self) -> None:
        """The fact is written when the markers are in the log, which may be after the coordinator's answer."""
        assert self._transaction is not None
        self._producer.flush(PATIENCE_S)
        is_committed = self.rng.random() >= self.actor.aborts
        began = now()
        if is_committed:
            self._producer.commit_transaction(PATIENCE_S)
        else:
            self._producer.abort_transaction(PATIENCE_S)
        self._wait_for_markers()
        places = [(self.actor.topic, place) for place in sorted(self._touched)]
        cluster = self.actor.cluster
        self.notebook.write(TransactionEnded(cluster, self._transaction, is_committed, places, began, now()))
        self._transaction = None
        self._touched = {}

    def _wait_for_markers(self) -> None:
        if not self._touched:
            return
        onlooker = confluent_kafka.Consumer(
            {"bootstrap.servers": self.servers[self.actor.cluster], "group.id": "rig onlooker", **CLIENT}
        )
        deadline = time.monotonic() + PATIENCE_S
        for place, last in self._touched.items():
            while ends_of(onlooker, self.actor.topic, place)[1] < last + 2:
                if time.monotonic() > deadline:
                    raise AssertionError(f"no marker after {last} of {self.actor.topic}-{place}")
                self.gate.wait(0.02)
        onlooker.close()

    def _send(self) -> None:
        actor, number = self.actor, self._number
        self._number += 1
        key = self._key(number)
        is_tombstone = self.rng.random() < actor.nulls and key is not None
        value = None if is_tombstone else self._value(number)
        place = self.rng.randrange(self._partitions)
        timestamp = self._timestamp(number)
        if actor.times == "log":
            timestamp = 0
        note = self._note_of(actor.cluster, number, key, is_tombstone, self._transaction, value)
        self._produce(self._producer, actor.topic, place, timestamp, key, value, note)
        if actor.mirror is not None:
            self._held.append((number, place, timestamp, key, value))
            while len(self._held) > actor.mirror.behind:
                self._copy(actor.mirror, *self._held.popleft())

    def _produce(
        self, producer: Any, topic: str, place: int, timestamp: int, key: bytes | None, value: bytes | None, note: Any
    ) -> None:
        while True:
            try:
                producer.produce(topic, value, key, partition=place, on_delivery=note, timestamp=timestamp)
                return
            except BufferError:
                producer.poll(0.1)

    def _copy(
        self, mirror: Mirror, number: int, place: int, timestamp: int, key: bytes | None, value: bytes | None
    ) -> None:
        if number % 100 < mirror.lost:
            return
        if mirror.partitions:
            place = number % self._copied_partitions
        note = self._note_of(mirror.cluster, number, key, value is None, None, value)
        self._produce(self._copier, self.actor.topic, place, timestamp, key, value, note)

    def _key(self, number: int) -> bytes | None:
        if self.actor.keys:
            return b"key %d" % self.rng.randrange(self.actor.keys)
        return None if number % 17 == 3 else f"{self.actor.name} {number}".encode()

    def _value(self, number: int) -> bytes:
        low, high = self.actor.size
        # Small ones are more frequent: each order of magnitude as likely as the others.
        size = int(low * (high / low) ** self.rng.random())
        text = f"{self.actor.name} {number} ".encode()
        return text + self.rng.randbytes(16) * ((size - len(text)) // 16 + 1) if size > len(text) else text

    def _timestamp(self, number: int) -> int:
        at = time.time_ns() // 1_000_000
        match self.actor.times:
            case "back":
                return at - (self.rng.randrange(3_600_000) if self.rng.random() < 0.2 else 0)
            case "equal":
                return self._base_ms + number // 200
            case "past":
                return self._base_ms - OLD_MS // 2 + number * 10
            case _:
                return at

    def _note_of(
        self, cluster: str, number: int, key: bytes | None, is_tombstone: bool, transaction: str | None,
        value: bytes | None,
    ) -> Any:  # fmt: skip
        shown = None if key is None else key.decode()
        return partial(self._note, cluster, number, shown, is_tombstone, transaction, len(value or b""), now())

    def _note(
        self, cluster: str, number: int, key: str | None, is_tombstone: bool, transaction: str | None, size: int,
        began: int, error: Any, message: Any,
    ) -> None:  # fmt: skip
        # None without an error: librdkafka sent the record again, and the broker had it already.
        offset = -1 if error is not None or message.offset() is None else message.offset()
        if transaction is not None and offset >= 0:
            self._touched[message.partition()] = max(offset, self._touched.get(message.partition(), -1))
        self._records += 1
        self.notebook.write(
            Produced(cluster, message.topic(), message.partition(), offset, message.timestamp()[1], size,
                     self.actor.name, number, key, is_tombstone, transaction, began, now())
        )  # fmt: skip

    def settle(self) -> None:
        self._pauses += 1
        if self._transaction is not None and (not self.actor.leaves_open or self._pauses % 2 == 0):
            self._end_transaction()
        for producer in (self._producer, self._copier):
            if producer is not None and producer.flush(PATIENCE_S):
                raise KafkaException(f"records are still under way after {PATIENCE_S} s")

    def idle(self) -> None:
        self.gate.wait(0.2)
        self._producer.poll(0)

    def finish(self) -> None:
        if self._transaction is not None:
            self._end_transaction()
