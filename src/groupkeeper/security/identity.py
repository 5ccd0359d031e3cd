"""The principal of a connection."""

from __future__ import annotations

from typing import NamedTuple

ANONYMOUS = "User:ANONYMOUS"


class Identity(NamedTuple):
    """The identity of a client.

    Attributes:
        principal: `Type:name`.
        expires_ms: when its authentication expires, milliseconds since the epoch; None: never.
        is_by_token: whether it logged in with a delegation token.
    """

    principal: str = ANONYMOUS
    expires_ms: int | None = None
    is_by_token: bool = False
