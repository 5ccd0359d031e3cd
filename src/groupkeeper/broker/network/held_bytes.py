"""Bounds the memory that all connections together hold."""

from __future__ import annotations

from typing import Protocol


class Holder(Protocol):
    """A connection that holds memory while it waits for its peer."""

    def abort(self, reason: str) -> None:
        """Closes the connection at once, and drops its bytes."""


class HeldBytes:
    """Counts bytes that wait for peers. When they exceed the bound, closes the connections that have waited longest, so
    that a peer that stops reading, or stops within a request, takes no memory from the others.

    Attributes:
        most: the bound; a single connection may exceed it. total: the held bytes.
    """

    def __init__(self, most: int, why: str) -> None:
        """`why` is the reason for closing a connection; it ends with the name of the setting."""
        self.most = most
        self.total = 0
        self._why = why
        self._by_connection: dict[Holder, int] = {}

    def hold(self, connection: Holder, size: int) -> None:
        """Sets how many bytes a connection holds. It is then the last in line to be aborted for room."""
        self.release(connection)
        self._by_connection[connection] = size
        self.total += size
        while self.total > self.most and len(self._by_connection) > 1:
            longest = next(iter(self._by_connection))
            held = self._by_connection[longest]
            self.release(longest)
            longest.abort(f"{self._why} ({self.most} bytes; its part was {held})")

    def release(self, connection: Holder) -> None:
        """Called when a connection no longer holds bytes."""
        self.total -= self._by_connection.pop(connection, 0)
