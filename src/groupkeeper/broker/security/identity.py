"""The principal of a connection."""

from __future__ import annotations

from typing import NamedTuple

ANONYMOUS = "User:ANONYMOUS"


class Identity(NamedTuple):
    """What is known of a client.

    Attributes:
        principal: `Type:name`.
        expires_ms: when what proved it ends, milliseconds since the epoch; None: never.
        is_by_token: whether a delegation token proved it.
    """

    principal: str = ANONYMOUS
    expires_ms: int | None = None
    is_by_token: bool = False
