"""What all actors of a worker have in common: a thread that steps, and comes to rest when it is asked to."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from confluent_kafka import KafkaException, TopicPartition
from tests.rig.facts import Notebook, Trouble, now

BACKOFF_MS = 400
"""A request that is sent again waits for so long first, 20 % more or less: so it can be told which may have been."""

PATIENCE_S = 280
"""So long a busy machine is waited for; librdkafka knows no longer times."""

CLIENT = {"log_level": 0, "reconnect.backoff.max.ms": 500, "allow.auto.create.topics": False,
          "topic.metadata.refresh.interval.ms": 3000, "retry.backoff.ms": BACKOFF_MS,
          "socket.timeout.ms": PATIENCE_S * 1000,
          "socket.connection.setup.timeout.ms": PATIENCE_S * 1000}  # fmt: skip

Found = TypeVar("Found")


def patiently(ask: Callable[[], Found]) -> Found:
    """What librdkafka is asked for; a connection, a leader or a log that is being opened is waited for."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return ask()
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def ends_of(client: Any, topic: str, partition: int) -> tuple[int, int]:
    """Where the log begins and ends."""
    ends: tuple[int, int] = patiently(lambda: client.get_watermark_offsets(TopicPartition(topic, partition), 30))
    return ends


def partitions_of(client: Any, topic: str) -> list[int]:
    """The numbers of a topic's partitions."""
    return patiently(lambda: sorted(client.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions))


class Gate:
    """Open: actors go on; closed: they rest; at last it is over."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._resting: set[threading.Thread] = set()
        self.is_closed = False
        self.is_over = False

    def close(self) -> None:
        with self._changed:
            self.is_closed = True

    def open(self) -> None:
        with self._changed:
            self.is_closed = False
            self._resting.clear()
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self.is_over = True
            self._changed.notify_all()

    def rest(self, thread: threading.Thread) -> None:
        with self._changed:
            if self.is_closed and thread not in self._resting:  # said once: who rests is woken by it
                self._resting.add(thread)
                self._changed.notify_all()

    def wait_for_rest(self, threads: Sequence[threading.Thread], timeout: float = 5 * PATIENCE_S) -> list[str]:
        """The names of those that go on after that time."""

        def restless() -> list[str]:
            return [one.name for one in threads if one not in self._resting and one.is_alive()]

        with self._changed:
            self._changed.wait_for(lambda: not restless(), timeout)
            return restless()

    def wait(self, timeout: float) -> None:
        """Until something changes, at most so long."""
        with self._changed:
            self._changed.wait(timeout)


class Performer(threading.Thread):
    """An actor of the story: does `step` until the end. What it does not expect is a Trouble among the facts."""

    def __init__(self, actor: Any, gate: Gate, notebook: Notebook, servers: dict[str, str], rng: random.Random) -> None:
        super().__init__(daemon=True, name=actor.name)
        self.actor = actor
        self.gate = gate
        self.notebook = notebook
        self.servers = servers
        self.rng = rng

    def run(self) -> None:
        try:
            self.begin()
            while not self.gate.is_over:
                if self.gate.is_closed:
                    self.settle()
                    while self.gate.is_closed and not self.gate.is_over:
                        self.gate.rest(self)  # again each time: the gate may have been open for a moment
                        self.idle()
                else:
                    self.step()
            self.settle()
            self.finish()
        except BaseException as error:  # the conductor fails the run with it
            self.notebook.write(Trouble(self.name, f"{type(error).__name__}: {error}", now()))
            self.notebook.flush()
            self.gate.rest(self)

    def begin(self) -> None:
        """Open connections."""

    def step(self) -> None:
        raise NotImplementedError

    def settle(self) -> None:
        """Bring to an end what is under way."""

    def idle(self) -> None:
        """Done again and again at rest."""
        self.gate.wait(0.2)

    def finish(self) -> None:
        """Close connections."""


class Pace:
    """Lets through so many in a second; what was missed while at rest is not made up for."""

    def __init__(self, rate: float) -> None:
        self._gap = 1 / rate
        self._next = time.monotonic()

    def wait_s(self) -> float:
        """Seconds until the next may go; 0: now."""
        return max(0.0, self._next - time.monotonic())

    def take(self) -> None:
        self._next = max(self._next + self._gap, time.monotonic() - 1.0)
