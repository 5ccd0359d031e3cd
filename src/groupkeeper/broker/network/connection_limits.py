"""Limits of the number and rate of connections, for the broker, a listener, and a client address.

As in Kafka, connections beyond the limits of the broker or a listener wait; connections beyond the limit of an address
are closed.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from logging import getLogger
from typing import NamedTuple, Protocol

from groupkeeper.broker.base import BrokerBase
from groupkeeper.broker.network.rated_log import RatedLog
from groupkeeper.broker.quotas.rate import QuotaRate, Recent
from groupkeeper.broker.settings.config import Config, parse_counts_by_host
from groupkeeper.broker.storage.open_files import descriptor_limit
from groupkeeper.java_numbers import INT_MAX

_log = getLogger("groupkeeper.broker")

_BROKER = ("broker", "")
_LOOK_AGAIN_S = 1.0
"""Wait before checking again, as the limits may have been raised."""


class ConnectionRefused(Exception):
    """The connection must be closed after `delay_s`; the text has the reason."""

    def __init__(self, why: str, delay_s: float = 0.0) -> None:
        super().__init__(why)
        self.delay_s = delay_s


class _Server(Protocol):
    log: RatedLog
    config: Config

    def close_idle(self) -> None:
        """Closes an idle connection to make room for another one."""


class _Own(NamedTuple):
    """A listener's counts: open connections, and new connections per second."""

    at_once: int
    per_second: int


class ConnectionLimits:
    """Counts the open connections of one broker."""

    def __init__(self, broker: BrokerBase, server: _Server) -> None:
        self.files = broker.files
        self._broker = broker
        self._server = server
        self._config = server.config
        self._by_address: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._rates: Recent[tuple[str, str], QuotaRate] = Recent()
        self._own_limits: dict[str, _Own] = {}
        self._since: object = None
        self._freed = asyncio.Event()
        self._overrides: dict[str, int] = {}

    def check(self, listener: str) -> None:
        """Raises `InvalidSetting` for invalid limits of a listener."""
        self._own(listener)

    async def wait_for_room(self, listener: str, opened: int) -> None:
        """Returns when a listener may accept one more connection; `opened` is its descriptor."""
        wait_ms = max(
            self._throttle_ms(_BROKER, self._config.max_connection_creation_rate),
            self._throttle_ms(("listener", listener), self._own(listener).per_second),
        )
        if wait_ms:
            await asyncio.sleep(wait_ms / 1000)
        while not (self._has_room(listener) and self._has_descriptors(opened)):
            self._freed.clear()
            try:
                await asyncio.wait_for(self._freed.wait(), _LOOK_AGAIN_S)
            except TimeoutError:
                continue

    def take(self, listener: str, address: str) -> None:
        """Counts a connection. Raises `ConnectionRefused`; then the connection isn't counted."""
        rate = self._broker.quotas.table.connection_rate(address)
        if rate is not None:
            wait_ms = self._throttle_ms(("ip", address), rate)
            if wait_ms:
                self._count_back(("ip", address), _BROKER, ("listener", listener))
                raise ConnectionRefused(
                    "its address opens too many a second (connection_creation_rate)", wait_ms / 1000
                )
        most = self._most_from(address)
        if self._by_address[address] >= most:
            raise ConnectionRefused(f"its address has {most} already (max.connections.per.ip)")
        self._by_address[address] += 1
        self._by_listener[listener] += 1

    def release(self, listener: str, address: str) -> None:
        """Called when a counted connection is closed."""
        self._by_listener[listener] -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
        self._freed.set()

    def _has_descriptors(self, opened: int) -> bool:
        if self.files.leaves_reserve(opened):
            return True
        text = "new connections wait: of the %d descriptors (ulimit -n) the last are for log files"
        self._server.log.line("every address", text, descriptor_limit(), most=1)
        self._server.close_idle()
        return False

    def _has_room(self, listener: str) -> bool:
        is_below = self._by_listener[listener] < self._own(listener).at_once
        return is_below and self._by_listener.total() < self._config.max_connections

    def _own(self, listener: str) -> _Own:
        self._take_settings()
        if listener not in self._own_limits:
            from groupkeeper.broker.security.properties import ListenerProperties

            own = ListenerProperties(self._config, listener)
            rate = own.value(Config.max_connection_creation_rate)
            self._own_limits[listener] = _Own(own.value(Config.max_connections), rate)
        return self._own_limits[listener]

    def _throttle_ms(self, of: tuple[str, str], per_second: int) -> int:
        if per_second >= INT_MAX:
            return 0
        window_ms, now_ms = self._config.quota_window_size_seconds * 1000, self._broker.now_ms()
        rate = self._rates.of(of, lambda: QuotaRate(window_ms, self._config.quota_window_num))
        rate.record(1, now_ms)
        return min(rate.excess_ms(per_second, now_ms), window_ms)

    def _count_back(self, *of: tuple[str, str]) -> None:
        for one in of:
            if one in self._rates:
                self._rates[one].record(-1, self._broker.now_ms())

    def _most_from(self, address: str) -> int:
        self._take_settings()
        return self._overrides.get(address, self._config.max_connections_per_ip)

    def _take_settings(self) -> None:
        if self._config.changed is not self._since:
            self._since = self._config.changed
            self._own_limits.clear()
            self._overrides = _addresses(self._config.max_connections_per_ip_overrides)


def _addresses(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for host, number in parse_counts_by_host(text).items():
        try:
            addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            _log.warning("max.connections.per.ip.overrides: cannot resolve %s: %s", host, error)
        else:
            found |= {str(address[4][0]): number for address in addresses}
    return found
