"""Quota entities (KIP-546): the quotas that may be set, and the order of their lookup."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from groupkeeper.java_numbers import INT_MAX, LONG_MAX
from groupkeeper.protocol.errors import InvalidRequest, UnsupportedVersion

USER, CLIENT_ID, IP = "user", "client-id", "ip"
PRODUCED, CONSUMED = "producer_byte_rate", "consumer_byte_rate"
MUTATED, HANDLED = "controller_mutation_rate", "request_percentage"
CONNECTED = "connection_creation_rate"

_LARGEST = {PRODUCED: LONG_MAX, CONSUMED: LONG_MAX, HANDLED: None, MUTATED: None}
_LARGEST_OF_IP = {CONNECTED: INT_MAX}
_EXACT, _DEFAULT, _SPECIFIED = range(3)
_KNOWN_CLIENTS = 10_000
"""The number of clients with cached limits; the cache is cleared when a quota changes."""

Entity = frozenset[tuple[str, str | None]]
"""Type and name of each part; the name None is the default of the type."""


class Component(NamedTuple):
    """A part of a filter: the type, how it is matched (exact, default, any that is specified), and the name."""

    entity_type: str
    match_type: int
    match: str | None


class Limit(NamedTuple):
    """The quota that applies to a client.

    Attributes:
        per_second: in bytes, percent of a second, or partitions.
        sharers: user and client id of the clients that share it; an empty one stands for all.
    """

    per_second: float
    sharers: tuple[str, str]


def check_entity(entity: Entity) -> None:
    """Raises `InvalidRequest` unless quotas can be set for the entity."""
    if not entity:
        raise InvalidRequest("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            raise InvalidRequest(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise InvalidRequest(f"Empty {kind} not supported")
    names = dict(entity)
    if IP in names and len(names) > 1:
        raise InvalidRequest("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    if names.get(IP) is not None and not _is_address(names[IP] or ""):
        raise InvalidRequest(f"{names[IP]} is not a valid IP or resolvable host.")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text == "localhost"
    return True


def check_quota(entity: Entity, key: str, value: float) -> None:
    """Raises `InvalidRequest` unless an entity may have the quota."""
    known: Mapping[str, int | None] = _LARGEST_OF_IP if IP in dict(entity) else _LARGEST
    if key not in known:
        raise InvalidRequest(f"Invalid configuration key {key}")
    if value <= 0:
        raise InvalidRequest(f"Quota {key} must be greater than 0")
    if not math.isfinite(value):
        raise InvalidRequest(f"Quota {key} must be a number")
    largest = known[key]
    if largest is None:
        return
    if value > largest:
        raise InvalidRequest(
            f"Proposed value for {key} is too large for a{'n INT' if largest == INT_MAX else ' LONG'}."
        )
    if value % 1.0 > 1e-6 or value < 1:
        raise InvalidRequest(f"{key} cannot be a fractional value.")


class QuotaTable:
    """The quotas of all entities."""

    def __init__(self) -> None:
        self._by_entity: dict[Entity, dict[str, float]] = {}
        self._found: dict[tuple[str, str, str], Limit | None] = {}

    def __bool__(self) -> bool:
        return bool(self._by_entity)

    def items(self) -> Iterator[tuple[Entity, Mapping[str, float]]]:
        """Each entity with its quotas."""
        yield from self._by_entity.items()

    def get(self, entity: Entity, key: str) -> float | None:
        """The quota of exactly this entity; None: there is none."""
        return self._by_entity.get(entity, {}).get(key)

    def put(self, entity: Entity, key: str, value: float | None) -> None:
        """Sets a quota, or removes it (None)."""
        self._found.clear()
        if value is not None:
            self._by_entity.setdefault(entity, {})[key] = value
            return
        quotas = self._by_entity.get(entity, {})
        quotas.pop(key, None)
        if not quotas:
            self._by_entity.pop(entity, None)

    def limit(self, key: str, user: str, client_id: str) -> Limit | None:
        """The quota that applies to a client: the first one that is set, in Kafka's order; None: there is none."""
        client_quota = (key, user, client_id)
        if client_quota not in self._found:
            if len(self._found) >= _KNOWN_CLIENTS:
                self._found.clear()
            self._found[client_quota] = self._find(key, user, client_id)
        return self._found[client_quota]

    def _find(self, key: str, user: str, client_id: str) -> Limit | None:
        for name in (user, None):
            for entity, sharers in (
                (frozenset({(USER, name), (CLIENT_ID, client_id)}), (user, client_id)),
                (frozenset({(USER, name), (CLIENT_ID, None)}), (user, client_id)),
                (frozenset({(USER, name)}), (user, "")),
            ):
                value = self.get(entity, key)
                if value is not None:
                    return Limit(value, sharers)
        for id_ in (client_id, None):
            value = self.get(frozenset({(CLIENT_ID, id_)}), key)
            if value is not None:
                return Limit(value, ("", client_id))
        return None

    def connection_rate(self, address: str) -> int | None:
        """The most new connections per second of an address; None: no limit."""
        names = (address, "localhost", None) if address in ("127.0.0.1", "::1") else (address, None)
        rates = (self.get(frozenset({(IP, name)}), CONNECTED) for name in names)
        return next((int(rate) for rate in rates if rate is not None), None)

    def matching(self, components: Iterable[Component], *, is_strict: bool) -> list[tuple[Entity, Mapping[str, float]]]:
        """The entities that match a filter, with their quotas; `is_strict`: only those without further parts. Raises
        `InvalidRequest`, `UnsupportedVersion`.
        """
        exact: dict[str, str | None] = {}
        specified: set[str] = set()
        for one in components:
            _check_component(one, {*exact, *specified})
            if one.match_type == _SPECIFIED:
                specified.add(one.entity_type)
            else:
                exact[one.entity_type] = one.match
        types = {*exact, *specified}
        if IP in types and len(types) > 1:
            raise InvalidRequest(
                "Invalid entity filter component combination. IP filter component should not be used with user or "
                "clientId filter component."
            )
        return [
            (entity, quotas)
            for entity, quotas in self._by_entity.items()
            if exact.items() <= dict(entity).items()
            and specified <= dict(entity).keys()
            and not (is_strict and len(entity) != len(types))
        ]


def _check_component(one: Component, known: set[str]) -> None:
    if not one.entity_type:
        raise InvalidRequest("Invalid empty entity type.")
    if one.entity_type in known:
        raise InvalidRequest(f"Entity type {one.entity_type} cannot appear more than once in the filter.")
    if one.entity_type not in (USER, CLIENT_ID, IP):
        raise UnsupportedVersion(f"Unsupported entity type {one.entity_type}")
    if one.match_type not in (_EXACT, _DEFAULT, _SPECIFIED):
        raise InvalidRequest(f"Unknown match type {one.match_type}")
    if one.match_type == _EXACT and one.match is None:
        raise InvalidRequest("Request specified MATCH_TYPE_EXACT, but set match string to null.")
    if one.match_type != _EXACT and one.match is not None:
        kind = "DEFAULT" if one.match_type == _DEFAULT else "SPECIFIED"
        raise InvalidRequest(f"Request specified MATCH_TYPE_{kind}, but also specified a match string.")
