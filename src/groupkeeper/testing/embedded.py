"""A broker in a thread of its own, so that clients of any kind in the same process can talk to it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from groupkeeper.broker import Broker

START_WITHIN_S = 30.0

SUITED_TO_TESTS = {"group.initial.rebalance.delay.ms": "0"}
"""Kafka waits three seconds for more members before the first rebalance of a group; a test should not."""


class EmbeddedBroker:
    """A running broker and its address; a context manager.

        with EmbeddedBroker({"num.partitions": "3"}) as broker:
            Producer({"bootstrap.servers": broker.bootstrap_servers})

    Args:
        properties: settings with Kafka's names, over those suited to tests.
        directory: where the data lies, to start again from it later; None is a temporary folder, gone with the broker.
    """

    def __init__(
        self, properties: Mapping[str, str] | None = None, *, directory: str | os.PathLike[str] | None = None
    ) -> None:
        self._properties = {**SUITED_TO_TESTS, **(properties or {})}
        self._directory = directory
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._thread: threading.Thread | None = None
        self.bootstrap_servers = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when clients can connect. Raises what kept the broker from starting: InvalidSetting, OSError."""
        ready: Future[str] = Future()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="groupkeeper-broker", daemon=True)
        self._thread.start()
        self.bootstrap_servers = ready.result(START_WITHIN_S)

    def stop(self) -> None:
        """Closes connections and files and ends the thread; does nothing when it is not running."""
        thread, self._thread = self._thread, None
        if thread is None or self._loop is None:
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        thread.join()

    def _run(self, ready: Future[str]) -> None:
        asyncio.run(self._serve(ready))

    async def _serve(self, ready: Future[str]) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            broker = Broker(properties=self._properties, directory=self._directory)
            await broker.start()
        except BaseException as error:
            ready.set_exception(error)
            return
        ready.set_result(broker.bootstrap_servers)
        try:
            await self._stopping.wait()
        finally:
            await broker.stop()
