"""Limits of dynamic updates, as in Kafka. Numbers of threads are checked, too, although this broker has one thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.settings.kafka import KEPT_AS_TEXT

_POOLS = (
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
_CLEANERS = "log.cleaner.threads"
_LIMITS = ("max.connections", "max.connection.creation.rate")
_LISTENERS = ("listeners", "controller.listener.names")
_BYTES_PER_CLEANER = 1 << 20


def check_change(before: Mapping[str, str], after: Mapping[str, str], cleaner_bytes: int) -> None:
    """Checks a dynamic update. `before` and `after` are all texts in force for a broker, by name; `cleaner_bytes` is
    the new `log.cleaner.dedupe.buffer.size`. Raises `InvalidSetting`.
    """
    if cleaner_bytes // _number(after, _CLEANERS) <= _BYTES_PER_CLEANER:
        raise InvalidSetting(
            "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
        )
    for name in _POOLS:
        _check_threads(name, _number(before, name), _number(after, name))
    _check_cleaners(_number(before, _CLEANERS), _number(after, _CLEANERS))
    for listener in _listeners(after):
        for name in _LIMITS:
            text = after.get(f"listener.name.{listener}.{name}", after.get(name, "1"))
            if int(text) <= 0:
                _refuse(f"Invalid {name} {text}")


def _listeners(texts: Mapping[str, str]) -> set[str]:
    """The names of the listeners in lower case, without those of the controller."""
    names, controllers = ({one.strip().lower() for one in texts.get(name, "").split(",")} for name in _LISTENERS)
    return {name.partition("://")[0] for name in names} - controllers


def _check_threads(name: str, current: int, wanted: int) -> None:
    what = f"Dynamic thread count update validation failed for {name}={wanted}, value should"
    if wanted < current // 2:
        _refuse(f"{what} be at least half the current value {current}")
    if wanted > current * 2:
        _refuse(f"{what} not be greater than double the current value {current}")


def _check_cleaners(current: int, wanted: int) -> None:
    if wanted < current // 2:
        _refuse(f"Log cleaner threads cannot be reduced to less than half the current value {current}")
    if wanted > current * 2:
        _refuse(f"Log cleaner threads cannot be increased to more than double the current value {current}")


def _number(texts: Mapping[str, str], name: str) -> int:
    return int(texts.get(name) or KEPT_AS_TEXT[name].default or 0)


def _refuse(why: str) -> NoReturn:
    raise InvalidSetting(
        f"Invalid value org.apache.kafka.common.config.ConfigException: {why} for configuration Invalid dynamic "
        "configuration"
    )
