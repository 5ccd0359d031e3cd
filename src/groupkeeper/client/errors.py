"""Errors of the client itself. An error code in a broker's response is a `protocol.errors.KafkaError` instead."""

from __future__ import annotations

from copy import copy
from typing import TypeVar

from groupkeeper.base_error import GroupkeeperError

E = TypeVar("E", bound=Exception)


class ClientError(GroupkeeperError):
    """The request could not be sent, or its response not read. The text has the remedy if it is known."""


class IllegalArgument(ClientError):
    """The call makes no sense as given: no request would be right."""


class InvalidAddress(IllegalArgument):
    """A bootstrap server is not of the form host:port."""


class Unrepresentable(IllegalArgument):
    """A value of the request has no form on the wire: a lone surrogate in a name, or a name that is too long."""


class ConnectionFailed(ClientError):
    """A broker could not be reached, or closed the connection. Retried until the call's timeout unless that cannot
    help."""


class UnresolvableName(ConnectionFailed):
    """The name of a server has no address."""


class BrokersNotFound(ClientError):
    """The brokers to send the request to could not be determined: `__cause__` is the reason."""


class CallTimedOut(ClientError):
    """Within the call's timeout came no response, or only retriable errors. `__cause__` is the last failure."""


class ClientClosed(ClientError):
    """The client was closed before or while the call ran."""


class UnexpectedResponse(ClientError):
    """The peer doesn't use Kafka's protocol, or its response is malformed or too large."""


class ResponseTooLarge(UnexpectedResponse):
    """The response exceeds the client's limit. Calls on many keys are retried with fewer keys per request."""


class MissingResult(ClientError):
    """The response lacks a requested key."""


class UnsupportedVersion(ClientError):
    """The broker is too old (or too new) for the request: the text names the API, its versions and the needed one."""


class NotABroker(UnsupportedVersion):
    """A node of Kafka that does not serve metadata to clients: a KRaft controller."""


class UnsupportedBatching(UnsupportedVersion):
    """The broker accepts one key per request (OffsetFetch < 8, FindCoordinator < 4); Admin then sends one per key."""


class UnsupportedSecurity(ClientError):
    """The configured security is not available, on this platform or without a library that the text names."""


class AuthenticationFailed(ClientError):
    """The broker or the client rejected the other's identity. Never retried.

    `refusal` is the broker's error (a `KafkaError`), None when authentication failed before the broker replied.
    """

    def __init__(self, text: str, refusal: Exception | None = None) -> None:
        super().__init__(text)
        self.refusal = refusal


class SaslMissing(AuthenticationFailed):
    """The listener requires SASL, and security.protocol is one without it."""


class TlsFailed(AuthenticationFailed):
    """The TLS handshake failed: a rejected certificate, no version or suite in common, or a peer without TLS."""


def copy_of(failure: E) -> E:
    """A copy of a failure for another waiter: an exception raised by several calls would mix up their tracebacks and
    contexts.
    """
    again = copy(failure)
    again.__cause__ = failure.__cause__
    return again
