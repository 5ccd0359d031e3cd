"""The broker under test: ours, or Apache Kafka, which shows that a test itself is right."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from tools import pypy
from tools.apache_kafka import ApacheKafka, answers_metadata, free_port

T = TypeVar("T")

COMPILED = pypy.ROOT / "build/compiled/bin/python"
"""What `make compiled` makes."""
PYTHONS = {"groupkeeper": sys.executable, "compiled": str(COMPILED), "pypy": str(pypy.PYTHON)}
"""What runs the kinds of brokers that are ours."""

# Short sessions are allowed, so that the crash of a member is noticed within the patience of a test.
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",  # records with old timestamps stay
}


def wait_for(condition: Callable[[], T], what: str, timeout: float = 20) -> T:
    """The first true value of `condition()`; AssertionError naming `what` after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {timeout} s: {what} (last: {value!r})"
        time.sleep(0.02)


class RunningBroker(Protocol):
    """What the tests need of a broker that runs in another process."""

    @property
    def bootstrap_servers(self) -> str: ...

    def start(self) -> None: ...

    def stop(self, *, keep: bool = False) -> None:
        """Ask the broker to end; `keep` keeps its files, so that `start` is a restart."""

    def kill(self) -> None:
        """End it without a chance to write anything; `start` is a restart."""


class GroupkeeperBroker:
    """`groupkeeper broker` in a process of its own, on ports and in a directory that outlive it."""

    def __init__(
        self, properties: Mapping[str, str] | None = None, python: str = sys.executable, nodes: int = 1
    ) -> None:
        self.port = free_port(nodes)
        self._nodes = nodes
        self.directory = Path(tempfile.mkdtemp(prefix="groupkeeper-broker-"))
        self._properties = PROPERTIES | dict(properties or {})
        self._python = python
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{self.port + number}" for number in range(self._nodes))

    @property
    def pid(self) -> int | None:
        """None while it does not run."""
        return None if self._child is None else self._child.pid

    @property
    def log(self) -> Path:
        return self.directory / "broker.log"

    def command(self) -> list[str]:
        options = [word for key, value in self._properties.items() for word in ("--property", f"{key}={value}")]
        return [self._python, "-m", "groupkeeper", "broker", "--port", str(self.port),
                "--brokers", str(self._nodes), "--data", str(self.directory / "data"), *options]  # fmt: skip

    def start(self, timeout: float = 20) -> None:
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=self.directory
            )
        child = self._child

        def ready() -> bool:
            assert child.poll() is None, f"the broker ended with {child.returncode}:\n{self.tail()}"
            return answers_metadata("127.0.0.1", self.port)

        try:
            wait_for(ready, "an answer of the broker", timeout)
        except AssertionError:
            self.kill()
            raise

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]

    def stop(self, *, keep: bool = False) -> None:
        if self._child is not None:
            self._child.terminate()
            try:
                self._child.wait(40)
            except subprocess.TimeoutExpired as error:  # named as the cause, so that an error before it is shown, too
                self.kill()
                raise AssertionError(f"the broker did not stop on SIGTERM:\n{self.tail()}") from error
        self._child = None
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
        self._child = None


def new_broker(kind: str, properties: Mapping[str, str] | None = None) -> RunningBroker:
    """A broker of that kind ("groupkeeper"; "compiled", "pypy": the same so; "three": three nodes; or "apache"), not
    started.
    """
    if kind == "apache":
        return ApacheKafka(PROPERTIES | dict(properties or {}))
    if kind == "three":
        return GroupkeeperBroker(properties, nodes=3)
    return GroupkeeperBroker(properties, PYTHONS[kind])


def kinds_under_test() -> list[str]:
    """Ours, unless BROKER_UNDER_TEST says "apache", "compiled", "pypy", "three" or several, with commas between."""
    return os.environ.get("BROKER_UNDER_TEST", "groupkeeper").split(",")
