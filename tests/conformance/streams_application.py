"""A real application of Kafka Streams 4.4.0, in a process of its own (java/WordCount.java)."""

import shutil
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from confluent_kafka import Consumer, TopicPartition
from tests.acts import committed_offsets
from tests.conformance.brokers import wait_for
from tests.conformance.member import Program
from tools.apache_kafka import cache_folder, fetch_streams

SOURCE = Path(__file__).parent / "java" / "WordCount.java"
START_TIMEOUT_S = 90


class WordCount(Program):
    """Counts words of `source` in `target` from creation to `stop`; its local state is new each time."""

    def __init__(
        self, servers: str, group: str, source: str, target: str, folder: Path, properties: Mapping[str, str]
    ) -> None:
        self._states: list[str] = []
        self._folder = folder / group
        self._log = folder / f"{group}.log"
        given = [f"{name}={value}" for name, value in properties.items()]
        jars = f"{cache_folder()}/jars/*:{fetch_streams()}/*"
        logging = f"-Dlog4j2.configurationFile={cache_folder() / 'log4j2.properties'}"
        java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", logging, "-cp", jars, str(SOURCE)]
        with self._log.open("ab") as log:
            super().__init__([*java, servers, group, source, target, str(self._folder), *given], log)

    def __enter__(self) -> Self:
        try:
            wait_for(self._is_running, "the state RUNNING", START_TIMEOUT_S)
        except AssertionError:
            self.kill()
            raise
        return self

    def kill(self) -> None:
        super().kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def hear(self, line: str) -> None:
        self._states.append(line.removeprefix("state ").strip())

    def _is_running(self) -> bool:
        is_well = self._child.poll() is None and "ERROR" not in self._states
        assert is_well, self._log.read_text()[-4000:]
        return self._states[-1:] == ["RUNNING"]


def counted(servers: str, target: str) -> Mapping[str, list[int]]:
    """What applications have written to the only partition of `target` and committed: the counts of each word."""
    settings = {"bootstrap.servers": servers, "group.id": "unused", "isolation.level": "read_committed",
                "enable.auto.commit": False, "enable.partition.eof": True}  # fmt: skip
    counts: defaultdict[str, list[int]] = defaultdict(list)
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(target, 0, 0)])
        while (message := consumer.poll(20)) is not None and not message.error():
            key, value = message.key(), message.value()
            assert key is not None
            assert value is not None
            counts[bytes(key).decode()].append(int.from_bytes(bytes(value), "big"))
        assert message is not None, "no end of the partition"
    finally:
        consumer.close()
    return dict(counts)


def committed(servers: str, group: str, topic: str) -> dict[int, int]:
    """What the group has committed in each partition of the topic, where it has."""
    return {tp.partition: offset for tp, offset in committed_offsets(servers, group).items() if tp.topic == topic}
