"""Members of share groups that acknowledge what they are given, some of it not yet."""

import contextlib
from typing import Any

import confluent_kafka
from confluent_kafka import AcknowledgeType, KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from tests.rig.actors.performing import CLIENT, PATIENCE_S, Performer, patiently
from tests.rig.facts import Acknowledged, Typed, now
from tests.rig.story import Sharer

RELEASES = 2
"""So often a record is given back, at most: after `group.share.delivery.count.limit` deliveries it is archived."""

LONGEST_REST_MS = 3_600_000
"""A member does not poll while the judges ask, which takes a busy machine more than the usual five minutes."""


def begin_at_the_oldest(admin: AdminClient, group: str) -> None:
    """So that a share group is given all there is."""
    setting = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[setting])
    patiently(lambda: admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S))


class SharerThread(Performer):
    actor: Sharer

    def begin(self) -> None:
        actor = self.actor
        servers: dict[str, Any] = {"bootstrap.servers": self.servers[actor.cluster], "log_level": 0}
        admin = AdminClient({**servers, **CLIENT})
        begin_at_the_oldest(admin, actor.group)
        self._client = confluent_kafka.ShareConsumer(
            {**servers, "group.id": actor.group, "client.id": actor.name, "share.acknowledgement.mode": "explicit",
             "max.poll.records": 100, "max.poll.interval.ms": LONGEST_REST_MS}
        )  # fmt: skip
        self._client.subscribe(list(actor.topics))
        self.notebook.write(Typed(actor.cluster, actor.group, "Share", now()))
        # Nothing is done yet; but it is known that the group is one.
        self.notebook.write(*(
            Acknowledged(actor.cluster, actor.group, topic, 0, [], True, now(), now()) for topic in actor.topics
        ))  # fmt: skip

    def step(self) -> None:
        """Releases some: they come again. What is under way counts as done or not until the answer is there."""
        accepted: list[Any] = []
        for message in self._client.poll(0.3):
            if message.error() is not None:
                continue
            is_done = (message.delivery_count() or 0) > RELEASES or self.rng.random() >= self.actor.releases
            self._client.acknowledge(message, AcknowledgeType.ACCEPT if is_done else AcknowledgeType.RELEASE)
            if is_done:
                accepted.append(message)
        if not accepted:
            with contextlib.suppress(KafkaException):
                self._client.commit_sync(PATIENCE_S)
            return
        began = now()
        try:
            results = self._client.commit_sync(PATIENCE_S)
            sure = {(one.topic, one.partition) for one, error in results.items() if error is None}
        except KafkaException:
            sure = set()
        ended = now()
        actor = self.actor
        offsets: dict[tuple[str, int], list[int]] = {}
        for message in accepted:
            offsets.setdefault((message.topic(), message.partition()), []).append(message.offset())
        self.notebook.write(*(
            Acknowledged(actor.cluster, actor.group, *place, sorted(some), place in sure, began, ended)
            for place, some in offsets.items()
        ))  # fmt: skip

    def finish(self) -> None:
        self._client.close()
