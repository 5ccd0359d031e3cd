"""What is wrong with settings of security, for both ends: the client raises its own errors for them, the broker its."""

from __future__ import annotations

from groupkeeper.base_error import GroupkeeperError


class BadCredentials(GroupkeeperError, ValueError):
    """A store, a certificate, a key or a login text that cannot be used. The text names the setting, and no secret."""


class UnsupportedCredentials(BadCredentials):
    """What is asked for is not available here, or not without a library that the text names."""
