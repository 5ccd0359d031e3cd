"""Threads that write and commit through every restart of the broker, and remember what they were told."""

import threading
import time
from typing import Any

import confluent_kafka

PARTITIONS = 3
QUICK = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 20}

Place = tuple[int, int]
"""Partition and offset."""


class Worker(threading.Thread):
    """Does `step` again and again until `end`, which raises what went wrong."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ending = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._ending.is_set():
                self.step()
            self.close()
        except BaseException as error:  # raised again by end()
            self.error = error

    def check(self) -> None:
        """Raises what went wrong so far."""
        if self.error is not None:
            raise self.error

    def end(self) -> None:
        self._ending.set()
        self.join(60)
        assert not self.is_alive(), f"{type(self).__name__} does not end"
        self.check()

    def step(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Writer(Worker):
    """An idempotent producer of the numbers 0, 1, 2, …, at most so many in a second."""

    def __init__(self, servers: str, topic: str, rate: int) -> None:
        super().__init__()
        self._topic = topic
        self._rate = rate
        self.sent = 0
        self._began = time.monotonic()
        self.acknowledged: dict[Place, bytes] = {}
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 1, **QUICK}
        )

    def step(self) -> None:
        if len(self._producer) < 100 and self.sent < (time.monotonic() - self._began) * self._rate:
            value = b"%d" % self.sent
            self._producer.produce(self._topic, value, partition=self.sent % PARTITIONS, on_delivery=self._note)
            self.sent += 1
            self._producer.poll(0)
        else:
            self._producer.poll(0.002)

    def _note(self, error: Any, message: Any) -> None:
        assert error is None, error
        place = (message.partition(), message.offset())
        assert place not in self.acknowledged, f"two records at {place}"
        self.acknowledged[place] = message.value()

    def close(self) -> None:
        assert self._producer.flush(30) == 0
        assert len(self.acknowledged) == self.sent


class Committer(Worker):
    """Commits 1, 2, 3, … for each partition, and remembers what was acknowledged and what was tried."""

    def __init__(self, servers: str, topic: str, group: str) -> None:
        super().__init__()
        self._topic = topic
        self.tried = 0
        self.acknowledged = 0
        self._consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False, **QUICK}
        )

    def step(self) -> None:
        self.tried += 1
        wanted = [confluent_kafka.TopicPartition(self._topic, p, self.tried) for p in range(PARTITIONS)]
        try:
            done = self._consumer.commit(offsets=wanted, asynchronous=False)
        except confluent_kafka.KafkaException:
            return  # not acknowledged: it may or may not be there
        if all(p.error is None for p in done):
            self.acknowledged = self.tried

    def close(self) -> None:
        self._consumer.close()
