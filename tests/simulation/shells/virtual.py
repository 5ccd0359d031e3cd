"""The real broker without sockets, threads or waiting: an event loop whose clock jumps to what is due next."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.simulation.shells.disk import Disk

from groupkeeper.broker import Broker
from groupkeeper.broker.network.listeners import Listener
from groupkeeper.broker.network.server import Server

_TICK_S = 1e-6
_BEGINNING_MS = 1_700_000_000_000


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs callbacks and timers in their order; nothing takes time but waiting, which is over at once."""

    def __init__(self, began_s: float) -> None:
        super().__init__()
        self.now_s = began_s
        self.raised: list[BaseException] = []
        self._selector = self
        self.set_exception_handler(self._note)

    def time(self) -> float:
        return self.now_s

    def select(self, timeout: float | None) -> list[Any]:
        """As a selector on which nothing ever happens."""
        assert timeout is not None, "nothing is due any more"
        self.now_s += timeout + _TICK_S  # so that it moves on, however long it has run
        return []

    def run_in_executor(self, executor: Any, work: Any, *arguments: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """At once: what runs in a thread elsewhere."""
        done = self.create_future()
        try:
            done.set_result(work(*arguments))
        except Exception as error:
            done.set_exception(error)
        return done

    def _expect_nothing(self, events: list[Any]) -> None:
        assert not events

    _process_events = _expect_nothing

    def _write_to_self(self) -> None:
        """Nobody waits in a selector: what another thread or a collected generator calls is due at once."""

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None:
            self.raised.append(error)


class DeafServer(Server):
    """Answers frames, and listens nowhere."""

    def bind(self, listener: Listener) -> int:
        return 1

    async def listen(self) -> None:
        """Nobody connects."""


class SimulatedBroker(Broker):
    """The broker on a virtual loop.

    Attributes:
        skew_ms: how far its wall clock is from that of the loop.
    """

    def __init__(self, directory: Path, properties: dict[str, str | int | float | bool]) -> None:
        super().__init__(directory=directory, properties=properties)
        self.skew_ms = 0

    def now_ms(self) -> int:
        return _BEGINNING_MS + int(asyncio.get_running_loop().time() * 1000) + self.skew_ms

    def crash(self) -> None:
        """Ends as by SIGKILL: nothing is written any more, and the directory is free."""
        self.files.close_all()
        self._directory.close()
        self.topics._remover.shutdown()


def run_life(loop: VirtualLoop, life: Callable[[], Any], disk: Disk) -> Any:
    """One life of a broker, up to its crash: whatever still runs then changes nothing on the disk."""
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(life())
    finally:
        disk.trouble, disk.tears, disk.is_gone = 0, False, True
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        asyncio.set_event_loop(None)
        loop.close()
        disk.is_gone = False
