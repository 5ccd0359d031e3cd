"""The exception that closes a connection. Not compiled, as it has subclasses."""

from __future__ import annotations


class CloseConnection(Exception):
    """The connection must be closed; the text is logged.

    Attributes:
        response: the last one for the peer; None for no response.
    """

    response: bytes | None = None
