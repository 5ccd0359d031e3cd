"""A member of a group that is Apache's Java consumer 4.4.0, in a process of its own (java/ConsumerMember.java)."""

import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.conformance.brokers import wait_for
from tests.conformance.clients import Received, TopicPartition
from tools.apache_kafka import cache_folder

SOURCE = Path(__file__).parent / "java" / "ConsumerMember.java"


class JavaMember:
    """Polls from creation to `stop`; looks like a `Member`."""

    def __init__(self, servers: str, group: str, topic: str, **properties: str) -> None:
        self.records: list[Received] = []
        self.assignment: set[TopicPartition] = set()
        self._topic = topic
        self._commits = 0
        jars = f"{cache_folder()}/jars/*"
        command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jars, str(SOURCE)]
        given = [f"{name.replace('_', '.')}={value}" for name, value in properties.items()]
        self._child = subprocess.Popen(
            [*command, servers, group, topic, *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._child.kill()
        self._child.wait()
        self._thread.join(5)

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
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
        assert self._child.stdin is not None
        wanted = self._commits + 1
        self._child.stdin.write("commit\n")
        self._child.stdin.flush()
        wait_for(lambda: self._commits >= wanted, "the commit", 30)

    def stop(self) -> None:
        """Leaves as a consumer leaves that is closed."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        assert self._child.wait(30) == 0
