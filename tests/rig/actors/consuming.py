"""Consumers of confluent-kafka in groups of both protocols, which commit some of what they read."""

import os
import signal
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from tests.rig.actors.performing import CLIENT, Performer
from tests.rig.facts import DONE, FAILED, MAYBE, Assigned, Committed, Consumed, Joining, Left, Typed, now
from tests.rig.story import Consumer

REFUSALS = frozenset([
    KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.FENCED_INSTANCE_ID, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.OFFSET_METADATA_TOO_LARGE, KafkaError.UNKNOWN_TOPIC_ID, KafkaError.GROUP_ID_NOT_FOUND,
])  # fmt: skip
"""After these nothing has been committed; after other errors that is not known."""

SESSION_MS = 10_000

ENDING = "\0"
"""confluent-kafka counts the end of a text in C as a part of a commit's metadata, and sends it."""

Place = tuple[str, int]


def outcome_of(error: Any) -> str:
    if error is None:
        return DONE
    return FAILED if error.code() in REFUSALS else MAYBE


def commit(performer: Performer, client: Any, wanted: Mapping[tuple[str, int], int], metadata: str) -> None:
    """Commits offsets in the name of the actor's group, and notes how each went."""
    actor = performer.actor
    offsets = [TopicPartition(*place, offset, metadata) for place, offset in wanted.items()]
    began = now()
    try:
        answers = client.commit(offsets=offsets, asynchronous=False)
        outcomes = {(one.topic, one.partition): outcome_of(one.error) for one in answers}
    except KafkaException as error:
        outcomes = dict.fromkeys(wanted, outcome_of(error.args[0]))
    ended = now()
    performer.notebook.write(*(
        Committed(actor.cluster, actor.group, one.topic, one.partition, one.offset, -1, metadata + ENDING,
                  outcomes[one.topic, one.partition], actor.name, began, ended)
        for one in offsets
    ))  # fmt: skip


class ConsumerThread(Performer):
    actor: Consumer

    def begin(self) -> None:
        self._session = 0
        self._has: set[Place] = set()
        self._positions: dict[Place, int] = {}
        self._held: deque[Any] = deque()
        self._paused: set[Place] = set()
        self._unsaved = 0
        self._born = time.monotonic()
        self._client: Any = None
        if self.actor.left:
            self._commit_what_it_left()
        self._join()

    def _commit_what_it_left(self) -> None:
        servers = self.servers[self.actor.cluster]
        self._client = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": self.actor.group, **CLIENT})
        self._positions = {(topic, 0): 0 for topic in self.actor.left}
        self._commit()
        self._client.close()

    def _join(self) -> None:
        actor = self.actor
        self._session += 1
        self._protocol = protocol = (
            actor.protocol if actor.protocol != "both" else ("classic", "consumer")[self._session % 2]
        )
        settings: dict[str, Any] = {
            "bootstrap.servers": self.servers[actor.cluster], "group.id": actor.group, "client.id": actor.name,
            "enable.auto.commit": False, "auto.offset.reset": "earliest", "group.protocol": protocol,
            "fetch.max.bytes": 4_000_000, "queued.max.messages.kbytes": 8192, **CLIENT,
        }  # fmt: skip
        if protocol == "classic":
            settings |= {"session.timeout.ms": SESSION_MS, "partition.assignment.strategy": actor.assignor}
        self._has, self._positions, self._unsaved = set(), {}, 0
        self._held.clear()
        self._paused = set()
        self._note_joining()
        self._client = confluent_kafka.Consumer(settings)
        self._client.subscribe(list(actor.topics), on_assign=self._gain, on_revoke=self._give_back, on_lost=self._lose)
        self._joined = time.monotonic()

    def _gain(self, client: Any, partitions: list[TopicPartition]) -> None:
        self._has |= {(one.topic, one.partition) for one in partitions}
        self._note_assignment()

    def _give_back(self, client: Any, partitions: list[TopicPartition]) -> None:
        gone = {(one.topic, one.partition) for one in partitions}
        self._has -= gone
        self._positions = {place: at for place, at in self._positions.items() if place not in gone}
        self._held = deque(one for one in self._held if (one.topic(), one.partition()) not in gone)
        self._note_assignment()
        if self._protocol == "classic":
            self._note_joining()

    def _lose(self, client: Any, partitions: list[TopicPartition]) -> None:
        self._give_back(client, partitions)
        self._note_joining()

    def _note_joining(self) -> None:
        """Also when it joins again: in classic groups after partitions were revoked, in all after they were lost."""
        actor = self.actor
        self.notebook.write(Joining(actor.cluster, actor.group, actor.name, self._session, now()))

    def _note_assignment(self) -> None:
        actor = self.actor
        kind = "" if actor.protocol == "both" else actor.protocol.capitalize()
        self.notebook.write(Typed(actor.cluster, actor.group, kind, now()))
        self.notebook.write(Assigned(actor.cluster, actor.group, actor.name, self._session, sorted(self._has), now()))

    def step(self) -> None:
        actor = self.actor
        if actor.dies_s and time.monotonic() - self._born > actor.dies_s:
            self._die()
        if actor.flap_s and time.monotonic() - self._joined > actor.flap_s:
            self._leave()
            self.gate.wait(self.rng.uniform(0.1, 2))
            self._join()
        if self._paused:
            self._client.resume([TopicPartition(*place) for place in self._paused & self._has])
            self._paused = set()
        records = [self._held.popleft()] if self._held else self._client.consume(20, 0.1)
        for record in records:
            self._take(record)
        if self._unsaved >= actor.every and self._positions:
            self._commit()

    def _take(self, record: Any) -> None:
        if record.error() is not None:
            return  # told again, or tried again, by the client itself
        place = (record.topic(), record.partition())
        if place not in self._has:
            return
        actor, at = self.actor, record.offset()
        if self._positions.get(place) != at + 1:
            self.notebook.write(Consumed(actor.cluster, actor.group, *place, at, at, now()))
        self._positions[place] = at + 1
        self._unsaved += 1
        if actor.delay_ms:
            self.gate.wait(actor.delay_ms / 1000)

    def _commit(self) -> None:
        actor = self.actor
        chosen = [place for place in sorted(self._positions) if self.rng.random() < actor.commits]
        self._unsaved = 0
        if not chosen:
            return
        metadata = self.rng.choice(["", "", actor.name])
        commit(self, self._client, {place: self._positions[place] for place in chosen}, metadata)

    def idle(self) -> None:
        """Stays a member; what comes is kept for later."""
        record = self._client.poll(0.2)
        if record is not None and record.error() is None:
            self._held.append(record)
            self._paused.add((record.topic(), record.partition()))
            self._client.pause([TopicPartition(record.topic(), record.partition())])

    def _leave(self) -> None:
        began = now()
        actor, session = self.actor, self._session
        self._client.close()
        self._has = set()
        self.notebook.write(Left(actor.cluster, actor.group, actor.name, session, False, began, now()))

    def _die(self) -> None:
        actor, at = self.actor, now()
        self.notebook.write(Left(actor.cluster, actor.group, actor.name, self._session, True, at, at))
        self.notebook.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    def finish(self) -> None:
        self._leave()
