"""Addresses of bootstrap servers."""

from __future__ import annotations

from typing import NamedTuple

from groupkeeper.client.errors import InvalidAddress


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap_servers(text: str) -> list[Address]:
    """The addresses of "host:port,[v6-host]:port,…", without repetitions. Raises InvalidAddress naming the bad one.

    A listener's name in front, as in "PLAINTEXT://host:port", is allowed as Kafka's clients do.
    """
    if not isinstance(text, str):
        raise InvalidAddress(f"bootstrap servers are one text of host:port separated by commas, not {text!r}")
    addresses = dict.fromkeys(_parse(part.strip()) for part in text.split(",") if part.strip())
    if not addresses:
        raise InvalidAddress("no bootstrap server is given: expected host:port, or several separated by commas")
    return list(addresses)


def _parse(text: str) -> Address:
    rest = text.rpartition("://")[2]
    if "@" in rest:
        own = rest.rpartition("@")[2]
        raise InvalidAddress(
            f"bootstrap server {own}: no user or password stands in front of an address: "
            "give sasl.mechanism and sasl.jaas.config by --command-config"
        )
    host, colon, port_text = rest.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise InvalidAddress(f"bootstrap server {text}: an IPv6 address is written in brackets, as [::1]:9092")
    if not colon or not host or any(sign in host for sign in "[]/ "):
        raise InvalidAddress(f"bootstrap server {text}: expected host:port, for example {_example(rest)}")
    if not (port_text.isascii() and port_text.isdecimal() and 0 < int(port_text) < 65536):
        raise InvalidAddress(f"bootstrap server {text}: the port must be a number from 1 to 65535, not {port_text!r}")
    return Address(host, int(port_text))


def _example(text: str) -> str:
    name = text.strip("[]:/ ")
    return f"[{name}]:9092" if ":" in name else f"{name or 'localhost'}:9092"
