"""A worker of a share group with librdkafka's share consumer; it does and writes what ShareWorker.java does.

python -m tests.conformance.broker.shares.worker SERVERS GROUP TOPIC JOURNAL
"""

import os
import sys

from confluent_kafka import AcknowledgeType, KafkaException, Message, ShareConsumer


def main(servers: str, group_id: str, topic: str, path: str) -> None:
    consumer = ShareConsumer(
        {
            "bootstrap.servers": servers,
            "group.id": group_id,
            "share.acknowledgement.mode": "explicit",
            "max.poll.records": 200,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    with open(path, "a", encoding="ascii") as journal:
        while True:
            try:
                told, is_poisoned, lines = _work(consumer)
                journal.write("".join(lines))
                journal.flush()
                if is_poisoned:
                    os._exit(9)
                results = consumer.commit_sync(30)
            except KafkaException:
                continue  # the broker was killed, say
            done = {partition.partition for partition, error in results.items() if error is None}
            for message, kind in told:
                if message.partition() in done:
                    journal.write(_line("A" if kind == AcknowledgeType.ACCEPT else "R", message))
            journal.flush()


def _work(consumer: ShareConsumer) -> tuple[list[tuple[Message, AcknowledgeType]], bool, list[str]]:
    told: list[tuple[Message, AcknowledgeType]] = []
    lines, is_poisoned = [], False
    for message in consumer.poll(0.5):
        if message.error() is not None:
            continue
        lines.append(_line("D", message))
        is_poisoned |= message.value() == b"poison"
        kind = AcknowledgeType.REJECT if message.value() == b"bad" else AcknowledgeType.ACCEPT
        if message.value() == b"later" and message.delivery_count() == 1:
            kind = AcknowledgeType.RELEASE
        if kind != AcknowledgeType.RELEASE:
            told.append((message, kind))
            lines.append(_line("S" if kind == AcknowledgeType.ACCEPT else "T", message))
        consumer.acknowledge(message, kind)
    return told, is_poisoned, lines


def _line(what: str, message: Message) -> str:
    return f"{what} {message.partition()} {message.offset()} {message.delivery_count()}\n"


if __name__ == "__main__":
    main(*sys.argv[1:])
