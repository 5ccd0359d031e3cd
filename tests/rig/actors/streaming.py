"""Members of streams groups: what Kafka Streams would ask, by raw requests."""

import time
import uuid

from confluent_kafka.admin import AdminClient
from tests.rig.actors.performing import CLIENT, Performer, partitions_of
from tests.rig.facts import DONE, Assigned, Committed, Joining, Left, Typed, now
from tests.rig.story import Streamer
from tests.spark.streams_member import NOTE, StreamsMember

BEAT_S = 2.0
COMMIT_S = 5.0


class StreamerThread(Performer):
    """The only member of its group, so that it gets all tasks."""

    actor: Streamer

    def begin(self) -> None:
        actor = self.actor
        admin = AdminClient({"bootstrap.servers": self.servers[actor.cluster], **CLIENT})
        self._count = len(partitions_of(admin, actor.topic))
        self._member = StreamsMember(
            self.servers[actor.cluster],
            actor.group,
            actor.topic,
            str(uuid.UUID(int=self.rng.getrandbits(128))),
            actor.name,
        )
        self.notebook.write(Joining(actor.cluster, actor.group, actor.name, 1, now()))
        self._member.join(self._count)
        has = [(actor.topic, place) for place in range(self._count)]
        self.notebook.write(Assigned(actor.cluster, actor.group, actor.name, 1, has, now()))
        self.notebook.write(Typed(actor.cluster, actor.group, "Streams", now()))
        self._next = time.monotonic()

    def step(self) -> None:
        self._member.beat()
        if time.monotonic() > self._next and not self.gate.is_closed:
            self._next = time.monotonic() + COMMIT_S
            self._commit()
        self.gate.wait(BEAT_S)

    def _commit(self) -> None:
        actor = self.actor
        offsets = {place: self.rng.randrange(50) for place in range(self._count) if self.rng.random() < 0.8}
        if not offsets:
            return
        began = now()
        self._member.commit(offsets)
        ended = now()
        self.notebook.write(*(
            Committed(actor.cluster, actor.group, actor.topic, place, offset, -1, NOTE, DONE, actor.name, began, ended)
            for place, offset in offsets.items()
        ))  # fmt: skip

    def idle(self) -> None:
        self._member.beat()
        self.gate.wait(BEAT_S)

    def finish(self) -> None:
        actor, began = self.actor, now()
        self._member.leave()
        self.notebook.write(Left(actor.cluster, actor.group, actor.name, 1, False, began, now()))
