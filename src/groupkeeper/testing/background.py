"""An embedded broker for code that isn't asyncio: it runs in a thread of its own."""

from __future__ import annotations

import asyncio
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from groupkeeper.broker.broker import Broker
from groupkeeper.broker.settings.catalog import unknown_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Coroutine, Iterable, Mapping
    from concurrent.futures import Future
    from types import TracebackType
    from typing import Self

    from groupkeeper.broker.authorizer import Authorizer
    from groupkeeper.broker.faults.injected import Faults


class BackgroundBroker:
    """A broker in a thread, for code that blocks: `with BackgroundBroker() as broker: use(broker.bootstrap_servers)`.

    Without a directory, the broker keeps its logs in a temporary one, and removes it when it stops. A second
    BackgroundBroker on the same directory continues where the first one ended.

    Attributes:
        bootstrap_servers: `host:port`, of each node, known once it is started.
    """

    bootstrap_servers: str

    def __init__(
        self,
        *,
        port: int | None = None,
        directory: str | os.PathLike[str] | None = None,
        properties: Mapping[str, str] | None = None,
        authorizer: Authorizer | None = None,
        users: Mapping[str, str] | None = None,
        acls: Iterable[str] = (),
        tls: bool = False,
        brokers: int = 1,
        racks: Iterable[str] = (),
    ) -> None:
        """Takes the arguments of `Broker`: by default any free port of 127.0.0.1, without users and TLS. Raises
        `InvalidSetting`; warns of settings that neither this broker nor Kafka has.
        """
        self._broker = Broker(
            port=port,
            directory=directory,
            properties=properties,
            authorizer=authorizer,
            users=users,
            acls=acls,
            tls=tls,
            brokers=brokers,
            racks=racks,
        )
        for name in self._broker.config.unknown:
            warnings.warn(unknown_text(name), stacklevel=2)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="groupkeeper-broker")
        self._ready = Event()
        self._running: Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_wanted: asyncio.Event | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def authorizer(self) -> Authorizer:
        """The broker's authorizer; can be replaced while the broker runs."""
        return self._broker.authorizer

    @authorizer.setter
    def authorizer(self, authorizer: Authorizer) -> None:
        self._broker.authorizer = authorizer

    def client_properties(self, user: str = "") -> dict[str, str]:
        """Client properties (Java names) beside `bootstrap_servers`: TLS, and the login of `user` if given."""
        return self._broker.client_properties(user)

    def librdkafka_properties(self, user: str = "") -> dict[str, str]:
        """Client properties by the names of librdkafka (confluent-kafka), with `bootstrap.servers`."""
        return self._broker.librdkafka_properties(user)

    @property
    def faults(self) -> Faults:
        """Injects faults; to be used from the test's own thread. See docs/testing.md."""
        return self._broker.faults

    def metric(self, name: str, **labels: str) -> float:
        """The current value of a metric, by Kafka's name (docs/metrics.md). Raises KeyError."""
        return self.faults.in_loop(lambda: self._broker.metrics.value(name, **labels))

    def stop_node(self, node: int) -> None:
        """See `Broker`, also for the methods below. Each returns when the change has taken effect."""
        self._carry_out(self._broker.stop_node(node))

    def kill_node(self, node: int) -> None:
        self._carry_out(self._broker.kill_node(node))

    def start_node(self, node: int) -> None:
        self._carry_out(self._broker.start_node(node))

    def pause_node(self, node: int) -> None:
        self._carry_out(self._broker.pause_node(node))

    def cut_off_node(self, node: int) -> None:
        self._carry_out(self._broker.cut_off_node(node))

    def hide_node(self, node: int) -> None:
        self._carry_out(self._broker.hide_node(node))

    def slow_node(self, node: int, delay_ms: float) -> None:
        self._carry_out(self._broker.slow_node(node, delay_ms))

    def resume_node(self, node: int) -> None:
        self._carry_out(self._broker.resume_node(node))

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        self._carry_out(self._broker.move_leader(topic, partition, node))

    def set_in_sync(self, topic: str, partition: int, nodes: Collection[int]) -> None:
        self._carry_out(self._broker.set_in_sync(topic, partition, nodes))

    def move_coordinator(self, group_id: str, node: int) -> None:
        self._carry_out(self._broker.move_coordinator(group_id, node))

    def move_transaction_coordinator(self, transactional_id: str, node: int) -> None:
        self._carry_out(self._broker.move_transaction_coordinator(transactional_id, node))

    def _carry_out(self, work: Coroutine[None, None, None]) -> None:
        assert self._loop is not None, "the broker is not running"
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def start(self) -> None:
        """Starts the broker; returns when clients can connect. Raises the error of the broker's start."""
        self._running = self._thread.submit(asyncio.run, self._serve())
        self._running.add_done_callback(lambda _: self._ready.set())
        self._ready.wait()
        if self._running.done():
            self._thread.shutdown()
            self._running.result()

    def stop(self) -> None:
        """Stops the broker and waits for its thread; does nothing when it isn't running."""
        if self._running is None or self._loop is None or self._stop_wanted is None:
            return
        if not self._running.done():
            self._loop.call_soon_threadsafe(self._stop_wanted.set)
        self._thread.shutdown()
        self._running.result()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop_wanted = asyncio.Event()
        async with self._broker:
            self.bootstrap_servers = self._broker.bootstrap_servers
            self._ready.set()
            await self._stop_wanted.wait()
