"""A bound for what all connections together make the broker keep in memory."""

from __future__ import annotations

from typing import Protocol


class Holder(Protocol):
    """A connection that waits for its peer."""

    def abort(self, reason: str) -> None:
        """Closes the connection at once: what waits for its peer is dropped."""


class HeldBytes:
    """Bytes that wait for the peers of connections.

    When there are too many, the connection that has waited for its peer for longest is closed, and so on: a peer that
    stops reading, or stops in the middle of a request, takes no memory from the others.

    Attributes:
        most: the bound. One connection alone may exceed it.
        total: the bytes that are held.
    """

    def __init__(self, most: int, why: str) -> None:
        """`why` is the reason for closing a connection; it ends with the name of the setting."""
        self.most = most
        self.total = 0
        self._why = why
        self._by_connection: dict[Holder, int] = {}

    def hold(self, connection: Holder, size: int) -> None:
        """Sets how many bytes a connection holds; it becomes the one that waits least."""
        self.release(connection)
        self._by_connection[connection] = size
        self.total += size
        while self.total > self.most and len(self._by_connection) > 1:
            longest = next(iter(self._by_connection))
            held = self._by_connection[longest]
            self.release(longest)
            longest.abort(f"{self._why} ({self.most} bytes; its part was {held})")

    def release(self, connection: Holder) -> None:
        """The connection holds nothing any more."""
        self.total -= self._by_connection.pop(connection, 0)
