"""Those who commit, or only read, without being members of the group, and those who delete the oldest records."""

from typing import Any

import confluent_kafka
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from tests.rig.actors.consuming import commit
from tests.rig.actors.performing import CLIENT, PATIENCE_S, Performer, ends_of, partitions_of, patiently
from tests.rig.facts import Cut, Reading, now
from tests.rig.story import Committer, Cutter, Reader

LOOKED_AT = 8
"""Of so many partitions the ends of the log are asked for each time; the others' offsets are as before, or a guess."""


class CommitterThread(Performer):
    actor: Committer

    def begin(self) -> None:
        actor = self.actor
        self._client = confluent_kafka.Consumer({
            "bootstrap.servers": self.servers[actor.cluster], "group.id": actor.group, "client.id": actor.name,
            "enable.auto.commit": False, "auto.offset.reset": "earliest", **CLIENT,
        })  # fmt: skip
        self._places = [(name, place) for name in actor.topics for place in partitions_of(self._client, name)]
        self._offsets: dict[tuple[str, int], int] = {}
        if actor.style == "follow":
            self._client.assign([TopicPartition(*place, 0) for place in self._places])

    def step(self) -> None:
        if self.actor.style == "follow":
            for record in self._client.consume(100, self.actor.every_s):
                if record.error() is None:
                    self._offsets[str(record.topic()), record.partition() or 0] = (record.offset() or 0) + 1
            chosen = sorted(self._offsets)
        else:
            self.gate.wait(self.actor.every_s)
            self._wander()
            chosen = self._places
        wanted = [place for place in chosen if self.rng.random() < self.actor.share]
        if wanted and not self.gate.is_closed:
            self._commit(wanted)

    def _wander(self) -> None:
        for place in self._places:
            if place not in self._offsets:
                self._offsets[place] = self.rng.randrange(30)
        for place in self.rng.sample(self._places, min(LOOKED_AT, len(self._places))):
            low, high = ends_of(self._client, *place)
            match self.rng.randrange(6):
                case 0:
                    self._offsets[place] = high
                case 1:
                    self._offsets[place] = max(0, low - self.rng.randrange(5))
                case 2:
                    self._offsets[place] = high + self.rng.randrange(5)
                case _:
                    self._offsets[place] = self.rng.randint(low, high)

    def _commit(self, wanted: list[tuple[str, int]]) -> None:
        offsets = {place: self._offsets[place] for place in wanted}
        commit(self, self._client, offsets, self.rng.choice(self.actor.metadata))

    def finish(self) -> None:
        self._client.close()


class ReaderThread(Performer):
    """Asks for the group's offsets, which there are none of, and reads from the beginnings of the logs."""

    actor: Reader

    def begin(self) -> None:
        actor = self.actor
        self._client = confluent_kafka.Consumer({
            "bootstrap.servers": self.servers[actor.cluster], "group.id": actor.group, "client.id": actor.name,
            "enable.auto.commit": False, "auto.offset.reset": "earliest", "fetch.max.bytes": 1_000_000, **CLIENT,
        })  # fmt: skip
        self._client.assign([
            TopicPartition(name, place) for name in actor.topics for place in partitions_of(self._client, name)
        ])  # fmt: skip
        self.notebook.write(Reading(actor.cluster, actor.group, actor.name, now()))

    def step(self) -> None:
        self._client.consume(100, 1.0)

    def finish(self) -> None:
        self._client.close()


class CutterThread(Performer):
    actor: Cutter

    def begin(self) -> None:
        settings: dict[str, Any] = {"bootstrap.servers": self.servers[self.actor.cluster], **CLIENT}
        self._admin = AdminClient(settings)
        self._onlooker = confluent_kafka.Consumer({**settings, "group.id": "rig onlooker"})
        self._places = partitions_of(self._onlooker, self.actor.topic)

    def step(self) -> None:
        self.gate.wait(self.actor.every_s)
        if self.gate.is_closed:
            return
        actor, place = self.actor, self.rng.choice(self._places)
        low, high = ends_of(self._onlooker, actor.topic, place)
        cut = TopicPartition(actor.topic, place, self.rng.randint(low, high))
        began = now()
        start = patiently(lambda: self._admin.delete_records([cut])[cut].result(PATIENCE_S).low_watermark)
        self.notebook.write(Cut(actor.cluster, actor.topic, place, start, began, now()))

    def finish(self) -> None:
        self._onlooker.close()
