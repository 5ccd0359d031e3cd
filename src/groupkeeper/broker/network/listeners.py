"""Listener addresses: `NAME://host:port` texts of `listeners` and `advertised.listeners`."""

from __future__ import annotations

from collections.abc import Mapping
from logging import getLogger
from typing import NamedTuple

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.settings.config import Config

_log = getLogger("groupkeeper.broker")

EVERY_ADDRESS = "0.0.0.0"
_NAMING = ("listeners", "advertised.listeners", "controller.listener.names")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class Listener(NamedTuple):
    """One address. An empty host stands for all addresses, port 0 for any free one."""

    name: str
    host: str
    port: int
    protocol: str = "PLAINTEXT"


class Endpoint(NamedTuple):
    """The address at which clients reach a node."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


def parse_listener(text: str, setting: str) -> Listener:
    """Raises `InvalidSetting` naming the setting."""
    name, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if not (name and separator and colon and port.isdigit() and int(port) < 65536):
        raise InvalidSetting(f"Unable to parse {text} to a broker endpoint ({setting})")
    return Listener(name.upper(), host.strip("[]"), int(port))


def listeners_of(config: Config) -> list[Listener]:
    """The listeners to open: those of `listeners` that don't belong to a controller. Raises `InvalidSetting`."""
    protocols = _protocols(config)
    controllers = {name.upper() for name in config.controller_listener_names}
    opened: list[Listener] = []
    for text in config.listeners:
        listener = parse_listener(text, "listeners")
        if listener.name in controllers:
            continue
        protocol = protocols.get(listener.name, listener.name)
        if protocol not in _PROTOCOLS:
            raise InvalidSetting(f"No security protocol defined for listener {listener.name}")
        if any(other.name == listener.name and other.host == listener.host for other in opened):
            raise InvalidSetting(f"listeners: each listener must have a different name, {listener.name} is there twice")
        opened.append(listener._replace(protocol=protocol))
    if not opened:
        raise InvalidSetting("listeners names no listener to open")
    return opened


def given_port(given: Mapping[str, str], port: int, protocol: str = "PLAINTEXT") -> dict[str, str]:
    """The settings with only the first client listener, on this port. Its name and hosts stay as given, so that clients
    get the same name. Without a given listener, it is named after the protocol and on 127.0.0.1. Raises
    `InvalidSetting`.
    """
    config = Config.from_texts({name: text for name, text in given.items() if name in _NAMING})
    controllers = {name.upper() for name in config.controller_listener_names}
    listeners = [parse_listener(text, "listeners") for text in config.listeners] if "listeners" in given else []
    first = next((one for one in listeners if one.name not in controllers), Listener(protocol, "127.0.0.1", 0))
    changed = {**given, "listeners": _text(first._replace(port=port))}
    advertised = [parse_listener(text, "advertised.listeners") for text in config.advertised_listeners]
    same = [_text(one._replace(port=port)) for one in advertised if one.name == first.name]
    changed.pop("advertised.listeners", None)
    return {**changed, "advertised.listeners": same[0]} if same else changed


def host_and_port(host: str, port: int) -> str:
    """`host:port` in the form that clients use; IPv6 hosts in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _text(listener: Listener) -> str:
    return f"{listener.name}://{host_and_port(listener.host, listener.port)}"


def advertised_of(config: Config, bound: dict[str, Listener], node: Endpoint, shift: int = 0) -> dict[str, Endpoint]:
    """The advertised address of each listener, as the node's. `bound` has the listeners with their real ports, by name;
    `shift` is added to configured ports.

    Raises `InvalidSetting`, as Kafka does, for an address that no client can reach.
    """
    advertised = {}
    for text in config.advertised_listeners:
        given = parse_listener(text, "advertised.listeners")
        if given.host == EVERY_ADDRESS:
            raise InvalidSetting(
                f"advertised.listeners: clients cannot reach {text}, as {EVERY_ADDRESS} means every address of this "
                "machine; give a name or an address that they can reach"
            )
        if given.name in bound:
            port = given.port + shift if given.port else bound[given.name].port
            advertised[given.name] = node._replace(host=given.host, port=port)
    return {name: advertised.get(name) or _reachable(listener, node) for name, listener in bound.items()}


def _reachable(listener: Listener, node: Endpoint) -> Endpoint:
    host = listener.host
    if host in ("", EVERY_ADDRESS, "::"):
        from socket import getfqdn

        host = getfqdn()
        _log.warning(
            "listener %s is on every address and has no entry in advertised.listeners: clients connect to %s",
            listener.name,
            host,
        )
    return node._replace(host=host, port=listener.port)


def _protocols(config: Config) -> dict[str, str]:
    protocols = {}
    for pair in config.listener_security_protocol_map:
        name, colon, protocol = pair.rpartition(":")
        if not colon:
            raise InvalidSetting(
                f"Invalid value {pair} for configuration listener.security.protocol.map: expected NAME:PROTOCOL"
            )
        protocols[name.upper()] = protocol.upper()
    return protocols
