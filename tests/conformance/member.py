"""A member of a group, polling: in a thread of the test, or as a program of its own, which can be killed."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar

from tests.conformance.clients import CLIENTS, Client, Consumer, ConsumerOptions, Received, TopicPartition

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]


class Member:
    """Polls in its own thread from creation to `stop`, as an application does."""

    def __init__(self, client: Client, servers: str, options: ConsumerOptions, topics: list[str]) -> None:
        self.records: list[Received] = []
        self.assignment: set[TopicPartition] = set()
        self.assignments: list[set[TopicPartition]] = []  # every different one seen, oldest first
        self.error: BaseException | None = None
        self._asked: queue.SimpleQueue[tuple[Callable[[Consumer], Any], Future[Any]]] = queue.SimpleQueue()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(client, servers, options, topics), daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._ending.set()
        self._thread.join(30)

    def _run(self, client: Client, servers: str, options: ConsumerOptions, topics: list[str]) -> None:
        try:
            consumer = client.consumer(servers, options)
            consumer.subscribe(topics)
            while not self._ending.is_set():
                self.records += consumer.poll(0.05)
                now = consumer.assignment()
                if now != self.assignment:
                    self.assignments.append(now)
                    self.assignment = now
                self._answer(consumer)
            consumer.close()
        except BaseException as error:  # raised again by stop()
            self.error = error

    def _answer(self, consumer: Consumer) -> None:
        while not self._asked.empty():
            question, answer = self._asked.get()
            try:
                answer.set_result(question(consumer))
            except Exception as error:  # belongs to who asked
                answer.set_exception(error)

    def ask(self, question: Callable[[Consumer], T], timeout: float = 20) -> T:
        """Call the consumer in its own thread, between two polls."""
        answer: Future[T] = Future()
        self._asked.put((question, answer))
        return answer.result(timeout)

    def commit(self) -> None:
        """Commits what it has read."""
        self.ask(lambda consumer: consumer.commit())

    def stop(self) -> None:
        """Leave as the client library leaves when it is closed."""
        self._ending.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), "the member does not end"
        if self.error is not None:
            raise self.error


class Program:
    """A process that says in lines what it sees; it ends by itself when its input does. `kill` is a crash."""

    def __init__(self, command: list[str], errors: int | IO[bytes] | None = None) -> None:
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.kill()

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self.hear(line)

    def hear(self, line: str) -> None:
        raise NotImplementedError

    def tell(self, line: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(line)
        self._child.stdin.flush()

    def stop(self) -> None:
        """Leaves as a client leaves that is closed."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        assert self._child.wait(60) == 0

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()
        self._thread.join(5)


class MemberProgram(Program):
    """The same in a process, which prints its assignment after each change."""

    def __init__(self, client: Client, servers: str, options: ConsumerOptions, topics: list[str]) -> None:
        spec = {"client": client.name, "servers": servers, "options": asdict(options), "topics": topics}
        self.assignment: set[TopicPartition] = set()
        super().__init__([sys.executable, "-m", "tests.conformance.member", json.dumps(spec)])

    def hear(self, line: str) -> None:
        self.assignment = {TopicPartition(*p) for p in json.loads(line)}


def main(spec: dict[str, Any]) -> None:
    consumer = CLIENTS[spec["client"]].consumer(spec["servers"], ConsumerOptions(**spec["options"]))
    consumer.subscribe(spec["topics"])
    last: set[TopicPartition] | None = None
    while True:
        consumer.poll(0.05)
        now = consumer.assignment()
        if now != last:
            print(json.dumps(sorted(now)), flush=True)
            last = now


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
