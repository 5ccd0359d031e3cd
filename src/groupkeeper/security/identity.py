"""The principal of a connection."""

from __future__ import annotations

from typing import NamedTuple

ANONYMOUS = "User:ANONYMOUS"


class Identity(NamedTuple):
    """The identity of a client."""

    principal: str = ANONYMOUS
    """`Type:name`."""
    expires_ms: int | None = None
    """When its authentication expires, milliseconds since the epoch; None: never."""
    is_by_token: bool = False
    """Whether it logged in with a delegation token."""
