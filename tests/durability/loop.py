"""Reads a topic and writes each value with an exclamation mark to another one, exactly once; sometimes it aborts.

python -m tests.durability.loop SERVERS INPUT OUTPUT GROUP TRANSACTIONAL_ID PROTOCOL

It has no end of its own and is meant to be killed. After any error it starts anew, as an application would.
librdkafka 2.16 may wait for ever for a group coordinator that was killed (`send_offsets_to_transaction`, whatever
timeout it is given): a turn that takes too long ends the process by SIGALRM, and whoever runs it starts another one.
"""

import signal
import sys

from confluent_kafka import Consumer, KafkaException, Message, Producer
from tests.durability.workers import QUICK

PATIENCE_S = 10.0
TOO_LONG_S = 6
ABORTED_TURN = 7
"""Every so many turns a transaction is aborted."""


class Loop:
    """A consumer and a producer that belong together."""

    def __init__(self, servers: str, topic: str, output: str, group: str, transactional_id: str, protocol: str) -> None:
        self._output = output
        self._turn = 0
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": 10_000,
                "linger.ms": 0,
                **QUICK,
            }
        )
        self._producer.init_transactions(PATIENCE_S)
        session = {} if protocol == "consumer" else {"session.timeout.ms": 3_000, "heartbeat.interval.ms": 500}
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                **session,
                **QUICK,
            }
        )
        self._consumer.subscribe([topic])

    def turn(self) -> bool:
        """One transaction. False: it was aborted, and what it read must be read again."""
        found = [message for message in self._consumer.consume(20, 0.3) if message.error() is None]
        if not found:
            return True
        self._turn += 1
        self._producer.begin_transaction()
        self._produce(found)
        self._producer.send_offsets_to_transaction(
            self._consumer.position(self._consumer.assignment()), self._consumer.consumer_group_metadata(), PATIENCE_S
        )
        if self._turn % ABORTED_TURN == 0:
            self._producer.abort_transaction(PATIENCE_S)
            return False
        self._producer.commit_transaction(PATIENCE_S)
        return True

    def _produce(self, found: list[Message]) -> None:
        for message in found:
            self._producer.produce(self._output, (message.value() or b"") + b"!", partition=message.partition() or 0)

    def close(self) -> None:
        self._consumer.close()


def main(*arguments: str) -> None:
    while True:
        loop = None
        try:
            signal.alarm(2 * TOO_LONG_S)
            loop = Loop(*arguments)
            signal.alarm(TOO_LONG_S)
            while loop.turn():
                signal.alarm(TOO_LONG_S)
        except KafkaException as error:
            print(error, file=sys.stderr, flush=True)  # the broker was killed, say
        finally:
            signal.alarm(TOO_LONG_S)
            if loop is not None:
                loop.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
