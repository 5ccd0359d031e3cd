"""Reads --bootstrap-server and --command-config as the official tools do, with their errors."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Mapping

from groupkeeper.cli.dropin.drop_in import ExecutionFailure, PropertiesUnreadable, log_warning
from groupkeeper.cli.dropin.options import Options, UsageProblem
from groupkeeper.client.admin import Admin
from groupkeeper.client.errors import ClientError

ADDRESS = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
"""A bootstrap server: host and port."""


class BadProperties(UsageProblem):
    """The file of properties has an invalid escape: most tools call this a wrong usage."""


NO_CLIENT = "Failed to create new KafkaAdminClient"


def open_admin(options: Options, timeout_ms: int | None = None) -> Admin:
    """The admin client for the options, not connected yet. `timeout_ms` is for each call, None: as properties have
    it. Raises ExecutionFailure, UsageProblem.
    """
    path = options.text("command-config")
    servers = options.text("bootstrap-server") or ""
    properties = {} if path is None else _read(path)
    addresses = bootstrap_servers(servers)
    if properties:
        properties = _checked(properties)
        logging.getLogger("groupkeeper.client").addHandler(_REFUSALS)
    try:
        return Admin(addresses, properties=properties, default_timeout_ms=timeout_ms)
    except ClientError as problem:
        log_warning(str(problem), "groupkeeper.client")
        raise ExecutionFailure(NO_CLIENT) from problem


class _Refusals(logging.Handler):
    """Writes why a broker refuses the client, which the official text doesn't have; once for all connections."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._shown:
            self._shown.add(text)
            log_warning(text, record.name)


_REFUSALS = _Refusals()


def _read(path: str) -> dict[str, str]:
    from groupkeeper.config_providers import Unresolved, resolved
    from groupkeeper.java_properties import BadEscape, read_properties

    try:
        return resolved(read_properties(path or "."))
    except Unresolved as problem:
        raise BadProperties(str(problem)) from None
    except FileNotFoundError:
        raise PropertiesUnreadable("java.nio.file.NoSuchFileException", path) from None
    except PermissionError:
        raise PropertiesUnreadable("java.nio.file.AccessDeniedException", path) from None
    except OSError as problem:
        raise PropertiesUnreadable("java.io.IOException", str(problem.strerror)) from None
    except BadEscape as problem:
        raise BadProperties(str(problem)) from None


def _checked(properties: Mapping[str, str]) -> dict[str, str]:
    from groupkeeper.cli.framework.properties import BadValue, check_properties

    try:
        checked = check_properties(properties)
    except BadValue as problem:
        raise ExecutionFailure(str(problem)) from None
    api, request = "default.api.timeout.ms", int(checked.get("request.timeout.ms", 30000))
    # These are valid alone, but not together.
    if int(checked.get(api, request)) < request or checked.get("bootstrap.controllers"):
        raise ExecutionFailure(NO_CLIENT)
    return checked


def bootstrap_servers(text: str) -> str:
    """The servers as `host:port,…`. Raises ExecutionFailure when one isn't an address or none has one."""
    text = text.strip()
    parts = re.split(r"\s*,\s*", text) if text else []
    if "" in parts:
        raise ExecutionFailure("Configuration 'bootstrap.servers' values must not be empty.")
    addresses = []
    for part in parts:
        match = ADDRESS.fullmatch(part)
        if match is None or int(match[2]) > 65535:
            raise ExecutionFailure(NO_CLIENT)
        if _has_address(match[1]):
            host = match[1] or "localhost"
            addresses.append(f"[{host}]:{match[2]}" if ":" in host else f"{host}:{match[2]}")
    if not addresses:
        raise ExecutionFailure(NO_CLIENT)
    return ",".join(addresses)


def _has_address(host: str) -> bool:
    try:
        socket.getaddrinfo(host or "localhost", None)
    except OSError:
        return False
    return True
