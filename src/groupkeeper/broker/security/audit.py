"""The audit log: logins and requests with principal, host and decision, one line of JSON each."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from typing import Any

from groupkeeper.base_error import InvalidSetting
from groupkeeper.broker.authorizer import Authorizer, Operation, ResourceType
from groupkeeper.broker.call import Call
from groupkeeper.broker.settings.config import Config
from groupkeeper.protocol.framing import api_name

_log = logging.getLogger("groupkeeper.broker")

_ANY = "*"


class AuditLog:
    """The audit log's file. It may be moved away: the next line starts a new file."""

    def __init__(self, config: Config) -> None:
        """Opens the file. Raises `InvalidSetting`."""
        path = config.groupkeeper_audit_file
        try:
            self._file = _File(path)
        except OSError as error:
            raise InvalidSetting(f"groupkeeper.audit.file={path} cannot be written: {error.strerror}") from None
        self._is_all = config.groupkeeper_audit_allowed

    def login(self, listener: str, client_host: str, how: str, principal: str | None, reason: str | None) -> None:
        """Logs a login. `how` is the SASL mechanism, or SSL. `reason`: why it failed, without secrets; None: it
        succeeded.
        """
        if reason is None and not self._is_all:
            return
        line: dict[str, Any] = {"event": "login", "principal": principal, "host": _host(client_host)}
        self._write({**line, "listener": listener, "by": how, "allowed": reason is None, "reason": reason})

    def decision(self, call: Call, operation: Operation, kind: ResourceType, name: str, *, allowed: bool) -> None:
        """Logs a decision of the authorizer."""
        if allowed and not self._is_all:
            return
        line: dict[str, Any] = {"event": "request", "principal": call.principal, "host": _host(call.client_host)}
        line |= {"listener": call.listener, "client_id": call.client_id, "api": api_name(call.api_key)}
        line |= {"operation": operation.name, "resource_type": kind.name, "resource": name}
        self._write({**line, "allowed": allowed})

    def _write(self, line: dict[str, Any]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        text = json.dumps({"time": now, **line})
        self._file.handle(logging.LogRecord("audit", logging.INFO, "", 0, text, (), None))

    def close(self) -> None:
        """Closes the file."""
        with suppress(OSError):  # it was reported when it was written
            self._file.close()


class _File(WatchedFileHandler):
    """A log file whose errors don't stop the broker: with a full disk, or without its folder, it still serves
    requests.
    """

    _is_failing = _has_failed = False

    def emit(self, record: logging.LogRecord) -> None:
        self._has_failed = False
        try:
            super().emit(record)
        except OSError:  # the file cannot be reopened
            self.handleError(record)
        self._is_failing = self._has_failed

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        if not self._is_failing:
            problem = sys.exc_info()[1]
            _log.error(
                "the audit log cannot be written (%s); events are missing in it until it is writable again", problem
            )
        self._has_failed = True


class AuditedAuthorizer(Authorizer):
    """Calls another authorizer, and logs its decisions: once for each operation on a resource in a request."""

    def __init__(self, authorizer: Authorizer, log: AuditLog) -> None:
        self._authorizer = authorizer
        self._log = log
        self._call: Call | None = None
        self._written: set[tuple[Operation, ResourceType, str]] = set()

    @property
    def decisive(self) -> Authorizer:
        return self._authorizer.decisive

    def allows(self, call: Call, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        is_allowed = self._authorizer.allows(call, operation, resource_type, name)
        self._write(call, operation, resource_type, name, is_allowed)
        return is_allowed

    def allows_any(self, call: Call, operation: Operation, resource_type: ResourceType) -> bool:
        is_allowed = self._authorizer.allows_any(call, operation, resource_type)
        self._write(call, operation, resource_type, _ANY, is_allowed)
        return is_allowed

    def allowed_operations(self, call: Call, resource_type: ResourceType, name: str) -> int:
        return self._authorizer.allowed_operations(call, resource_type, name)  # a query, not an access

    def _write(self, call: Call, operation: Operation, kind: ResourceType, name: str, is_allowed: bool) -> None:
        if call is not self._call:
            self._call = call
            self._written.clear()
        if (operation, kind, name) not in self._written:
            self._written.add((operation, kind, name))
            self._log.decision(call, operation, kind, name, allowed=is_allowed)


def _host(client_host: str) -> str:
    return client_host.removeprefix("/")
