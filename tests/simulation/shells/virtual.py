"""The real broker without sockets, threads or waiting: an event loop whose clock jumps to what is due next, and a disk
whose writes fail as they are told to.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

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

    def _expect_nothing(self, events: list[Any]) -> None:
        assert not events

    _process_events = _expect_nothing

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None:
            self.raised.append(error)


class Disk:
    """Stands in `groupkeeper.broker.log.segment` for the module `os`: writes of segments fail with `trouble`, and at
    times leave a part behind. What was written is there after a crash; what is lost with the power is not looked at.

    Attributes:
        trouble: the error number of all writes; 0 for none.
        tears: whether a part is written first, and can't be cut off.
        written: bytes.
    """

    def __init__(self, chance: random.Random) -> None:
        self.trouble = 0
        self.tears = False
        self.written = 0
        self._chance = chance

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def writev(self, descriptor: int, parts: tuple[bytes, ...]) -> int:
        if self.trouble:
            if self.tears:
                whole = b"".join(parts)
                os.write(descriptor, whole[: self._chance.randrange(len(whole))])
            raise OSError(self.trouble, os.strerror(self.trouble))
        written = os.writev(descriptor, parts)
        self.written += written
        return written

    def ftruncate(self, descriptor: int, length: int) -> None:
        if self.trouble and self.tears:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.ftruncate(descriptor, length)


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
        self._files.close_all()
        for journal in (self.topics._journal, self.group_configs._journal, self.dynamic_config._journal):
            journal.close()
        self._directory.close()


def run_life(loop: VirtualLoop, life: Callable[[], Any], disk: Disk) -> Any:
    """One life of a broker, up to its crash: whatever still runs then changes nothing on the disk."""
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(life())
    finally:
        disk.trouble, disk.tears = errno.EBADF, False
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        asyncio.set_event_loop(None)
        loop.close()
