"""The quotas that clients set, kept in the data directory, and how much each client used."""

from __future__ import annotations

from collections import deque
from logging import getLogger

from groupkeeper.broker.quotas.entities import CONSUMED, PRODUCED, Entity, QuotaTable, check_entity, check_quota
from groupkeeper.broker.storage.journal import Journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from groupkeeper.broker.call import Call
    from groupkeeper.broker.settings.config import Config
    from groupkeeper.broker.storage.directory import StorageDirectory

_log = getLogger("groupkeeper.broker")

JOURNAL = "quotas.journal"
_PRODUCE, _FETCH = 0, 1
_KEPT_RATES = 10_000
"""Of so many clients the use is remembered; beyond, that of the one which was idle for longest is forgotten."""


class Rate:
    """Bytes per second over some windows, as Kafka's sampled Rate: what lies before the first one counts as unused."""

    def __init__(self, window_ms: int, windows: int) -> None:
        self._window_ms = window_ms
        self._windows = windows
        self._samples: deque[tuple[int, float]] = deque()  # begin of a window, bytes

    def record(self, count: float, now_ms: int) -> None:
        """Counts what was sent just now."""
        if not self._samples or now_ms - self._samples[-1][0] >= self._window_ms:
            self._samples.append((now_ms, 0.0))
        began, total = self._samples[-1]
        self._samples[-1] = (began, total + count)

    def excess_ms(self, per_second: float, now_ms: int) -> int:
        """For how long nothing more may be sent, so that the rate comes down to this one; 0: it is not above."""
        while self._samples and now_ms - self._samples[0][0] >= self._windows * self._window_ms:
            self._samples.popleft()
        if not self._samples:
            return 0
        elapsed_ms = now_ms - self._samples[0][0]
        missing = self._windows - 1 - elapsed_ms // self._window_ms
        elapsed_ms += max(missing, 0) * self._window_ms
        rate = sum(total for _, total in self._samples) * 1000 / max(elapsed_ms, 1)
        return round((rate - per_second) / per_second * elapsed_ms) if rate > per_second else 0


class ClientQuotas:
    """Of one broker. Changes are on disk before they hold."""

    def __init__(self, directory: StorageDirectory, config: Config) -> None:
        """Reads what the directory holds. Raises `InvalidSetting`."""
        self.table = QuotaTable()
        self._config = config
        self._rates: dict[tuple[str, tuple[str, str]], Rate] = {}
        self._journal = Journal(directory.file(JOURNAL), "client quotas")
        for entry in self._journal.read():
            self.table.put(frozenset(map(tuple, entry["entity"])), entry["key"], entry["value"])
        self._journal.begin(
            _entry(entity, key, value) for entity, quotas in self.table.items() for key, value in quotas.items()
        )

    def alter(self, entity: Entity, changes: Mapping[str, float | None], *, validate_only: bool) -> None:
        """Sets quotas of an entity, and takes away those that are None. Raises `InvalidRequest`,
        `KafkaStorageError`.
        """
        check_entity(entity)
        for key, value in changes.items():
            if value is not None:
                check_quota(entity, key, value)
        for key, value in changes.items():
            if not validate_only and self.table.get(entity, key) != value:
                self._journal.write(_entry(entity, key, value))
                if key not in (PRODUCED, CONSUMED):
                    _log.warning("the quota %s is kept and described, but not enforced", key)
                self.table.put(entity, key, value)

    def throttle_ms(self, call: Call, request_size: int, response_size: int) -> int:
        """For how long the client has to wait after this request, which is counted."""
        if call.api_key == _PRODUCE:
            return self._used(PRODUCED, call, request_size)
        if call.api_key == _FETCH:
            return self._used(CONSUMED, call, response_size)
        return 0

    def largest_fetch(self, call: Call) -> int:
        """How many bytes a Fetch may bring at most: what the quota allows in all windows."""
        limit = self.table.limit(CONSUMED, _user(call), call.client_id or "")
        if limit is None:
            return 2**31 - 1
        windows_s = (self._config.quota_window_num - 1) * self._config.quota_window_size_seconds
        return min(int(limit.per_second * windows_s), 2**31 - 1)

    def _used(self, key: str, call: Call, count: int) -> int:
        limit = self.table.limit(key, _user(call), call.client_id or "")
        if limit is None:
            return 0
        rate = self._rates.pop((key, limit.sharers), None) or Rate(
            self._config.quota_window_size_seconds * 1000, self._config.quota_window_num
        )
        self._rates[key, limit.sharers] = rate  # the last one is the one used last
        if len(self._rates) > _KEPT_RATES:
            del self._rates[next(iter(self._rates))]
        rate.record(count, call.received_ms)
        return rate.excess_ms(limit.per_second, call.received_ms)

    def close(self) -> None:
        """Closes the registry."""
        self._journal.close()


def _user(call: Call) -> str:
    return call.principal.partition(":")[2]


def _entry(entity: Entity, key: str, value: float | None) -> dict[str, object]:
    return {"entity": sorted(map(list, entity), key=str), "key": key, "value": value}
