"""The quotas that clients set, stored in the data directory, and each client's usage."""

from __future__ import annotations

from collections.abc import Mapping

from groupkeeper.broker.call import Call
from groupkeeper.broker.quotas import entities
from groupkeeper.broker.quotas.rate import QuotaRate, Recent, TokenBucket
from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.storage.directory import StorageDirectory
from groupkeeper.broker.storage.journal import registry
from groupkeeper.java_numbers import INT_MAX
from groupkeeper.protocol.errors import ThrottlingQuotaExceeded

_PRODUCE, _FETCH = 0, 1


class Mutations:
    """The topic mutations of one request.

    Attributes:
        throttle_ms: for how long the client is throttled after it.
    """

    def __init__(self, bucket: TokenBucket | None, per_second: float, now_ms: int, *, is_strict: bool) -> None:
        """`bucket` None: there is no quota."""
        self.throttle_ms = 0
        self._bucket = bucket
        self._per_second = per_second
        self._now_ms = now_ms
        self._is_strict = is_strict

    def count(self, partitions: int) -> None:
        """Counts created or deleted partitions. Raises `ThrottlingQuotaExceeded` if the request is strict and the quota
        is already exhausted.
        """
        if self._bucket is None:
            return
        debt_ms = self._bucket.debt_ms(self._per_second, self._now_ms)
        if self._is_strict and debt_ms:
            self.throttle_ms = debt_ms
            raise ThrottlingQuotaExceeded
        self._bucket.take(partitions, self._per_second, self._now_ms)
        if not self._is_strict:
            self.throttle_ms = self._bucket.debt_ms(self._per_second, self._now_ms)


class ClientQuotas:
    """The client quotas of one broker, and their use. Changes are on disk before they take effect.

    Attributes:
        is_used: whether any quota is set.
    """

    def __init__(self, directory: StorageDirectory, config: Config) -> None:
        """Reads the stored quotas. Raises `InvalidSetting`."""
        self.table = entities.QuotaTable()
        self._config = config
        self._rates: Recent[tuple[str, tuple[str, str]], QuotaRate] = Recent()
        self._buckets: Recent[tuple[str, str], TokenBucket] = Recent()
        self._journal = registry(directory, "quotas.journal", "client quotas")
        self._journal.replay(
            lambda entry: self.table.put(frozenset(map(tuple, entry["entity"])), entry["key"], entry["value"])
        )
        self._journal.begin(
            _entry(entity, key, value) for entity, quotas in self.table.items() for key, value in quotas.items()
        )
        self.is_used = bool(self.table)

    def alter(self, entity: entities.Entity, changes: Mapping[str, float | None], *, validate_only: bool) -> None:
        """Sets quotas of an entity, and removes those with the value None. Raises `InvalidRequest`,
        `KafkaStorageError`.
        """
        entities.check_entity(entity)
        for key, value in changes.items():
            if value is not None:
                entities.check_quota(entity, key, value)
        for key, value in changes.items():
            if not validate_only and self.table.get(entity, key) != value:
                self._journal.write(_entry(entity, key, value))
                self.table.put(entity, key, value)
        self.is_used = bool(self.table)

    def throttle_ms(self, call: Call, request_size: int, response_size: int, handled_s: float) -> int:
        """Counts a request, and returns for how many milliseconds the client is throttled; 0: not at all. Sizes are in
        bytes, `handled_s` is the broker's time for the request.
        """
        window_ms = 1000 * self._config.quota_window_size_seconds
        throttle_ms = min(self._used(entities.HANDLED, call, 100 * handled_s), window_ms)
        if call.api_key == _PRODUCE:
            return max(throttle_ms, self._used(entities.PRODUCED, call, request_size))
        if call.api_key == _FETCH:
            return max(throttle_ms, self._used(entities.CONSUMED, call, response_size))
        return throttle_ms

    def mutations(self, call: Call, *, strict_since: int) -> Mutations:
        """The mutations of a request that creates or deletes topics or partitions; from API version `strict_since` on
        it may be refused.
        """
        is_strict = call.api_version >= strict_since
        limit = self.table.limit(entities.MUTATED, _user(call), call.client_id or "")
        if limit is None:
            return Mutations(None, 0, call.received_ms, is_strict=is_strict)
        seconds = self._config.controller_quota_window_num * self._config.controller_quota_window_size_seconds
        bucket = self._buckets.of(limit.sharers, lambda: TokenBucket(seconds))
        return Mutations(bucket, limit.per_second, call.received_ms, is_strict=is_strict)

    def largest_fetch(self, call: Call) -> int:
        """The most bytes of a Fetch response: the quota for all windows but one."""
        limit = self.table.limit(entities.CONSUMED, _user(call), call.client_id or "")
        if limit is None:
            return INT_MAX
        windows_s = (self._config.quota_window_num - 1) * self._config.quota_window_size_seconds
        return min(int(limit.per_second * windows_s), INT_MAX)

    def _used(self, key: str, call: Call, count: float) -> int:
        limit = self.table.limit(key, _user(call), call.client_id or "")
        if limit is None:
            return 0
        window_ms = self._config.quota_window_size_seconds * 1000
        rate = self._rates.of((key, limit.sharers), lambda: QuotaRate(window_ms, self._config.quota_window_num))
        rate.record(count, call.received_ms)
        return rate.excess_ms(limit.per_second, call.received_ms)


def _user(call: Call) -> str:
    return call.principal.partition(":")[2]


def _entry(entity: entities.Entity, key: str, value: float | None) -> dict[str, object]:
    return {"entity": sorted(map(list, entity), key=str), "key": key, "value": value}
