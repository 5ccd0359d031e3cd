"""A member of a group that is Apache's Java consumer 4.4.0, in a process of its own (java/ConsumerMember.java)."""

import subprocess
from pathlib import Path

from tests.conformance.brokers import wait_for
from tests.conformance.clients import Received, TopicPartition
from tests.conformance.member import Program
from tools.apache_kafka import cache_folder

SOURCE = Path(__file__).parent / "java" / "ConsumerMember.java"


class JavaMember(Program):
    """Polls from creation to `stop`; looks like a `Member`."""

    def __init__(self, servers: str, group: str, topic: str, **properties: str) -> None:
        self.records: list[Received] = []
        self.assignment: set[TopicPartition] = set()
        self._topic = topic
        self._commits = 0
        jars = f"{cache_folder()}/jars/*"
        command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jars, str(SOURCE)]
        given = [f"{name.replace('_', '.')}={value}" for name, value in properties.items()]
        super().__init__([*command, servers, group, topic, *given], subprocess.DEVNULL)

    def hear(self, line: str) -> None:
        what, *words = line.split()
        if what == "record":
            partition, offset, value = words
            place = (self._topic, int(partition), int(offset))
            self.records.append(Received(*place, None, value.encode(), (), -1))
        elif what == "assigned":
            numbers = words[0].split(",") if words else []
            self.assignment = {TopicPartition(self._topic, int(number)) for number in numbers}
        elif what == "committed":
            self._commits += 1

    def commit(self) -> None:
        """Commits what it has read."""
        wanted = self._commits + 1
        self.tell("commit\n")
        wait_for(lambda: self._commits >= wanted, "the commit", 30)
