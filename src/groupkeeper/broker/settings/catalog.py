"""All settings of a broker, with or without an effect here: their types and defaults, and how they may change.

They are declared in `Config`, or in `KEPT_AS_TEXT`. A setting of a listener,
`listener.name.<listener>.<setting>`, has the type and bounds of `<setting>`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.kafka import KEPT_AS_TEXT, QUOTAS
from groupkeeper.broker.settings.order import in_kafkas_order
from groupkeeper.broker.settings.table import ANY, ONE, Setting, plain

_PREFIX = "listener.name."
_OF_ALL_LISTENERS = ("max.connections", "max.connection.creation.rate", "num.network.threads")
"""Settings of a listener that can be changed for all brokers at once."""

_ALWAYS_GIVEN = ("node.id", "controller.listener.names")
"""Kafka has no defaults for these."""


@cache
def listed_names() -> tuple[str, ...]:
    """The settings that Kafka describes when none is requested by name, in its order."""
    own = (one.name for one in Config.settings() if one.is_listed and not one.is_ours)
    return tuple(in_kafkas_order([*own, *KEPT_AS_TEXT]))


def base_name(name: str) -> str:
    """The name of a setting without the prefix of a listener, if it has one."""
    return name.removeprefix(_PREFIX).partition(".")[2] if name.startswith(_PREFIX) else name


def broker_setting(name: str) -> Setting[Any] | None:
    """The setting of a broker, whether it has an effect here or not; None when Kafka has none of the name."""
    base = base_name(name)
    return plain(base, "long") if base in QUOTAS else _listed(base)


def _listed(name: str) -> Setting[Any] | None:
    """A setting that Kafka describes under this very name."""
    return Config.setting(name) or KEPT_AS_TEXT.get(name)


def change_of(name: str) -> str:
    """How a setting may change while the broker runs: FIXED, ANY, ONE or LISTENER. Unknown names are ANY (KIP-226)."""
    if name.startswith(_PREFIX):
        return ANY if base_name(name) in _OF_ALL_LISTENERS else ONE
    found = _listed(name)
    return ANY if found is None else found.change


def default_text(name: str) -> str | None:
    """The default as Kafka describes it; None: it is unset, or the name is unknown."""
    found = _listed(name)
    if found is None or name in _ALWAYS_GIVEN:
        return None
    text = found.format(found.default)
    return text if text or found.has_empty_default else None


def unknown_text(name: str) -> str:
    """A warning about a setting that neither this broker nor Kafka has, with a similar known name."""
    from difflib import get_close_matches

    near = get_close_matches(name, [*(one.name for one in Config.settings()), *KEPT_AS_TEXT], n=1, cutoff=0.7)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"unknown setting {name}: neither this broker nor Apache Kafka has it{meant}"
