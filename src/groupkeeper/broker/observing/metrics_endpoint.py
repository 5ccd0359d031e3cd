"""The metrics for Prometheus, on 127.0.0.1. Needs the extra `metrics` (prometheus_client)."""

from __future__ import annotations

import asyncio

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.observing.metrics_table import METRICS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from threading import Thread
    from wsgiref.simple_server import WSGIServer

    from prometheus_client import Metric as Family

    from groupkeeper.broker.observing.metrics_table import Sample
    from groupkeeper.broker.storage.open_files import OpenFiles

_HOST = "127.0.0.1"
_PATIENCE_S = 10.0


class MetricsEndpoint:
    """Answers GET /metrics in a thread of its own; reads the values in the broker's thread."""

    def __init__(self, server: WSGIServer, thread: Thread) -> None:
        self.port = server.server_port
        self._server = server
        self._thread = thread

    @classmethod
    async def open(cls, samples: Callable[[], list[Sample]], port: int, files: OpenFiles) -> MetricsEndpoint:
        """`samples` reads the values; connections leave descriptors for `files`. Raises OSError when it can't listen,
        `InvalidSetting` without the library.
        """
        try:
            from prometheus_client import CollectorRegistry, start_http_server
        except ImportError:
            raise InvalidSetting(
                "groupkeeper.metrics.port needs prometheus_client: pip install '.[metrics]' in a checkout brings it"
            ) from None
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector(samples, asyncio.get_running_loop()))
        try:
            server, thread = start_http_server(port, _HOST, registry)
        except OSError as error:
            why = f"cannot listen on {_HOST}:{port} for metrics: {error.strerror or error}"
            raise OSError(error.errno, why) from None
        server.verify_request = lambda request, client_address: files.leaves_reserve(request.fileno())  # type: ignore
        return cls(server, thread)

    async def close(self) -> None:
        """Stops listening."""
        # In another thread: a request in progress waits for this one.
        await asyncio.to_thread(self._server.shutdown)
        self._server.server_close()
        self._thread.join()


class _Collector:
    def __init__(self, samples: Callable[[], list[Sample]], loop: asyncio.AbstractEventLoop) -> None:
        self._samples = samples
        self._loop = loop

    def collect(self) -> Iterator[Family]:
        async def read() -> list[Sample]:
            return self._samples()

        return families(asyncio.run_coroutine_threadsafe(read(), self._loop).result(_PATIENCE_S))


def families(samples: Iterable[Sample]) -> Iterator[Family]:
    """The samples grouped as Prometheus requires, including metrics without values.

    Counts are of type "unknown", because Prometheus' counters end in `_total` and Kafka's names do not.
    """
    from prometheus_client import Metric as Family

    by_name = {}
    for metric in METRICS.values():
        is_count = metric.ending or (metric.name.endswith(("-count", "-total")) and not metric.labels)
        kind = "unknown" if is_count else "gauge"
        by_name[metric.name] = Family(metric.prometheus_name, f"{metric.doc} ({metric.mbean}, {metric.name})", kind)
    for metric, labels, value in samples:
        by_name[metric.name].add_sample(metric.prometheus_name, dict(zip(metric.labels, labels, strict=True)), value)
    yield from by_name.values()
