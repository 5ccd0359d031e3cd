"""What happens to topics: retention cuts them, they get more partitions, they are deleted and made again."""

import time
from functools import partial
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from tests.rig.actors.consuming import ENDING, outcome_of
from tests.rig.actors.performing import CLIENT, PATIENCE_S, Performer, ends_of, partitions_of, patiently
from tests.rig.facts import Committed, Cut, Made, Produced, Removed, now
from tests.rig.story import Grower, Onlooker, Phoenix

LOOK_S = 0.4


class OnlookerThread(Performer):
    """Writes down where logs begin that the broker cuts by itself; also while the others rest."""

    actor: Onlooker

    def begin(self) -> None:
        self._client = confluent_kafka.Consumer(
            {"bootstrap.servers": self.servers[self.actor.cluster], "group.id": "rig onlooker", **CLIENT}
        )
        self._looked = dict.fromkeys(partitions_of(self._client, self.actor.topic), (0, now()))

    def step(self) -> None:
        self.gate.wait(LOOK_S)
        for place, (start, before) in self._looked.items():
            asked = now()
            low, _ = ends_of(self._client, self.actor.topic, place)
            if low > start:
                self.notebook.write(Cut(self.actor.cluster, self.actor.topic, place, low, before, now()))
            self._looked[place] = (low, asked)

    def settle(self) -> None:
        self.step()

    def idle(self) -> None:
        self.step()

    def finish(self) -> None:
        self._client.close()


class GrowerThread(Performer):
    """Gives a topic more partitions."""

    actor: Grower

    def begin(self) -> None:
        self._admin = AdminClient({"bootstrap.servers": self.servers[self.actor.cluster], **CLIENT})
        self._count = len(partitions_of(self._admin, self.actor.topic))
        self._next = time.monotonic() + self.actor.every_s

    def step(self) -> None:
        self.gate.wait(0.2)
        if time.monotonic() < self._next or self._count >= self.actor.most or self.gate.is_closed:
            return
        self._next = time.monotonic() + self.actor.every_s
        self._count += 1
        began = now()
        (grown,) = self._admin.create_partitions([NewPartitions(self.actor.topic, self._count)]).values()
        grown.result(PATIENCE_S)
        self.notebook.write(Made(self.actor.cluster, self.actor.topic, self._count, {}, began, now()))


class PhoenixThread(Performer):
    """A topic of its own: made, written to, committed for, deleted, and made again."""

    actor: Phoenix

    def begin(self) -> None:
        servers: dict[str, Any] = {"bootstrap.servers": self.servers[self.actor.cluster], **CLIENT}
        self._admin = AdminClient(servers)
        self._settings = servers
        self._producer: Any = None
        self._client = confluent_kafka.Consumer({**servers, "group.id": self.actor.group, "enable.auto.commit": False})
        self._number = 0
        self._is_there = False
        self._until = 0.0

    def step(self) -> None:
        if not self._is_there:
            self._create()
        self._produce(self.rng.randint(1, 5))
        if self.rng.random() < 0.4:
            self._commit()
        self.gate.wait(0.5)
        if time.monotonic() > self._until and not self.gate.is_closed:
            self._delete()

    def _create(self) -> None:
        actor, began = self.actor, now()
        deadline = time.monotonic() + PATIENCE_S
        while True:
            (made,) = self._admin.create_topics([NewTopic(actor.topic, actor.partitions, 1)]).values()
            try:
                made.result(PATIENCE_S)
                break
            except KafkaException:  # the one before is not gone yet
                if time.monotonic() > deadline:
                    raise
                self.gate.wait(0.2)
        while self._leaders() < actor.partitions:
            self.gate.wait(0.1)
        self.notebook.write(Made(actor.cluster, actor.topic, actor.partitions, {}, began, now()))
        # A new one: producers remember for a while that a topic is not there.
        self._producer = confluent_kafka.Producer({**self._settings, "acks": "all", "retries": 0})
        self._is_there = True
        self._until = time.monotonic() + self.rng.uniform(0.5, 1.5) * actor.every_s

    def _leaders(self) -> int:
        topic = self.actor.topic
        found = patiently(lambda: self._client.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions)
        return sum(one.leader >= 0 for one in found.values())

    def _produce(self, count: int) -> None:
        for _ in range(count):
            place = self.rng.randrange(self.actor.partitions)
            note = partial(self._note, self._number, now())
            value = f"{self.actor.name} {self._number}".encode()
            self._producer.produce(self.actor.topic, value, partition=place, on_delivery=note,
                                   timestamp=time.time_ns() // 1_000_000)  # fmt: skip
            self._number += 1
        self._producer.flush(PATIENCE_S)

    def _note(self, number: int, began: int, error: Any, message: Any) -> None:
        actor = self.actor
        offset = -1 if error is not None else message.offset()
        self.notebook.write(
            Produced(actor.cluster, actor.topic, message.partition(), offset, message.timestamp()[1], 10, actor.name,
                     number, None, False, None, began, now())
        )  # fmt: skip

    def _commit(self) -> None:
        actor = self.actor
        offsets = [TopicPartition(actor.topic, place, self.rng.randrange(4), "") for place in range(actor.partitions)]
        began = now()
        try:
            answers: Any = self._client.commit(offsets=offsets, asynchronous=False)
            outcomes = [outcome_of(one.error) for one in answers]
        except KafkaException as error:
            outcomes = [outcome_of(error.args[0])] * len(offsets)
        ended = now()
        self.notebook.write(*(
            Committed(actor.cluster, actor.group, actor.topic, one.partition, one.offset, -1, ENDING, outcome,
                      actor.name, began, ended)
            for one, outcome in zip(offsets, outcomes, strict=True)
        ))  # fmt: skip

    def _delete(self) -> None:
        began = now()
        (gone,) = self._admin.delete_topics([self.actor.topic]).values()
        gone.result(PATIENCE_S)
        while self.actor.topic in patiently(lambda: self._client.list_topics(timeout=PATIENCE_S).topics):
            self.gate.wait(0.1)
        self.notebook.write(Removed(self.actor.cluster, self.actor.topic, began, now()))
        self._is_there = False
        if self.rng.random() < 0.5:
            self.gate.wait(self.rng.uniform(1, 6))

    def finish(self) -> None:
        self._client.close()
