"""Workers of a share group: they take jobs from one partition, one by one, until all are done (confluent-kafka)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import AcknowledgeType, KafkaException, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from groupkeeper.demo.stage import Terminal, TourFailed, emphasised, say
from groupkeeper.demo.traffic import PATIENCE_S, LiveMember, client_settings, running

SHARE_GROUP = "packing"
TOPIC = "parcels"
JOBS = 400
DAMAGED = b"damaged"
_PORTION = 20
_WORK_S = 0.02


def prepare(bootstrap: str, group_id: str) -> None:
    """Makes the topic with its jobs, one of which cannot be done, and lets the group begin at its start."""
    admin = AdminClient(client_settings(bootstrap))
    begin = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    group = ConfigResource(ResourceType.GROUP, group_id, incremental_configs=[begin])
    try:
        admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(PATIENCE_S)
        admin.incremental_alter_configs([group])[group].result(PATIENCE_S)
    except (KafkaException, TimeoutError) as error:
        raise TourFailed(f"the share group could not be prepared: {str(error) or 'no answer'}") from error
    producer = Producer({**client_settings(bootstrap), "batch.num.messages": _PORTION})
    for number in range(JOBS):
        producer.produce(TOPIC, DAMAGED if number == JOBS // 2 else f"parcel {number}".encode())
    if producer.flush(PATIENCE_S):
        raise TourFailed("the jobs of the share group were not acknowledged")


class Worker(LiveMember):
    """A member of a share group: accepts finished tasks, and rejects impossible ones.

    Attributes:
        accepted, rejected: how many records; they count once the broker has confirmed it.
    """

    def __init__(self, bootstrap: str, group_id: str, client_id: str) -> None:
        super().__init__(client_id)
        self.accepted = 0
        self.rejected = 0
        self._settings = {
            **client_settings(bootstrap),
            "group.id": group_id,
            "client.id": client_id,
            "share.acknowledgement.mode": "explicit",
            "max.poll.records": _PORTION,
        }

    def run(self) -> None:
        with ShareConsumer(self._settings) as consumer:
            consumer.subscribe([TOPIC])
            while not self.stopping.is_set():
                self._work(consumer)

    def _work(self, consumer: ShareConsumer) -> None:
        accepted = rejected = 0
        for message in consumer.poll(0.2):
            if message.error() is not None:
                continue  # the client retries by itself
            is_damaged = message.value() == DAMAGED
            consumer.acknowledge(message, AcknowledgeType.REJECT if is_damaged else AcknowledgeType.ACCEPT)
            accepted, rejected = accepted + (not is_damaged), rejected + is_damaged
        if accepted or rejected:
            self.stopping.wait(_WORK_S)
            errors = [error for error in consumer.commit_sync(PATIENCE_S).values() if error is not None]
            if not errors:
                self.accepted += accepted
                self.rejected += rejected


@contextmanager
def live_workers(bootstrap: str, group_id: str, count: int) -> Iterator[list[Worker]]:
    """Workers that have done every job between them, and stay; they leave at the end."""
    workers = [Worker(bootstrap, group_id, f"{group_id}-{number}") for number in range(1, count + 1)]
    with running(workers):
        deadline = time.monotonic() + PATIENCE_S
        while sum(worker.accepted + worker.rejected for worker in workers) < JOBS:
            if time.monotonic() > deadline:
                raise TourFailed(f"{[(one.name, one.accepted, one.rejected) for one in workers]} of {JOBS} jobs")
            workers[0].stopping.wait(0.05)
        yield workers


def work_off_a_queue(terminal: Terminal) -> None:
    """A share group from its first job to its last, and back to its first. Raises `TourFailed`."""
    say(emphasised(f"\nShare: members of {SHARE_GROUP}, a share group, work off the same partition, record by record"))
    prepare(terminal.address, SHARE_GROUP)
    with live_workers(terminal.address, SHARE_GROUP, 2) as workers:
        shares = " and ".join(f"{worker.accepted + worker.rejected} by {worker.name}" for worker in workers)
        rejected = sum(worker.rejected for worker in workers)
        say(f"  {JOBS} jobs are done, {shares}; {rejected} was damaged, so it was rejected instead of accepted")
        if rejected != 1:
            raise TourFailed(f"{rejected} jobs were rejected, and one is damaged")
        terminal.show(
            "both members have the one partition",
            f"kafka-share-groups --describe --group {SHARE_GROUP} --members --verbose",
            expect=f"{SHARE_GROUP}-2",
        )
    described = terminal.show(
        "LAG 0: no job is left; START-OFFSET, which is stored now and then, may be behind",
        f"kafka-share-groups --describe --group {SHARE_GROUP}",
        expect="START-OFFSET",
    )
    row = next(line.split() for line in described.splitlines() if line.startswith(SHARE_GROUP))
    if row[4] != "0":
        raise TourFailed(f"{row[4]} jobs are left")
    terminal.show(
        "the same jobs again: the queue begins at its start",
        f"kafka-share-groups --reset-offsets --group {SHARE_GROUP} --topic {TOPIC} --to-earliest --execute",
        expect=TOPIC,
    )
    terminal.show(
        "the queue as groupkeeper shows it; share groups stand beside the others",
        f"groupkeeper groups describe {SHARE_GROUP}",
        expect=SHARE_GROUP,
    )
