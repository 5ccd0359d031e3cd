"""Errors of the client itself. An error code in a broker's response is a ``protocol.errors.KafkaError`` instead."""

from __future__ import annotations

from copy import copy
from typing import TypeVar

from groupkeeper.base_error import GroupkeeperError

E = TypeVar("E", bound=Exception)


class ClientError(GroupkeeperError):
    """The request could not be sent, or the response not be read. The text has the remedy if one is known."""


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
    """The brokers to send the request to could not be determined: ``__cause__`` is the reason."""


class CallTimedOut(ClientError):
    """No answer, or none but retriable errors, within the call's timeout. ``__cause__`` is the last failure."""


class ClientClosed(ClientError):
    """The client was closed before or while the call ran."""


class UnexpectedAnswer(ClientError):
    """The peer doesn't use Kafka's protocol, or its answer is malformed or too large."""


class AnswerTooLarge(UnexpectedAnswer):
    """The response exceeds the client's limit. Calls on many keys are retried with fewer keys per request."""


class MissingResult(ClientError):
    """The response lacks a requested key."""


class UnsupportedVersion(ClientError):
    """The broker is too old (or too new) for the request: the text names the API, its versions and the needed one."""


class NotABroker(UnsupportedVersion):
    """A node of Kafka that has no metadata for clients: a KRaft controller."""


class UnsupportedBatching(UnsupportedVersion):
    """The broker takes only one key per request (OffsetFetch < 8, FindCoordinator < 4); the Admin falls back."""


class UnsupportedSecurity(ClientError):
    """The configured security is not available, on this platform or without a library that the text names."""


class AuthenticationFailed(ClientError):
    """The broker did not authenticate the client, or the client the broker. Never retried: waiting changes nothing.

    ``refusal`` is the broker's error (a ``KafkaError``), None when authentication failed before the broker replied.
    """

    def __init__(self, text: str, refusal: Exception | None = None) -> None:
        super().__init__(text)
        self.refusal = refusal


class SaslMissing(AuthenticationFailed):
    """The listener requires SASL, and security.protocol is one without it."""


class TlsFailed(AuthenticationFailed):
    """No TLS connection: certificates that are not accepted, nothing in common, or no TLS on the other side."""


def copy_of(failure: E) -> E:
    """The same failure for another waiter. An exception keeps the traceback and the context of each place it is raised
    at, so one that many calls raise would mix up theirs.
    """
    again = copy(failure)
    again.__cause__ = failure.__cause__
    return again
