"""Errors in security settings. The client and the broker each convert them to their own exceptions."""

from __future__ import annotations

from groupkeeper.base_error import GroupkeeperError


class BadCredentials(GroupkeeperError, ValueError):
    """A store, a certificate, a key or a login text that cannot be used. The text names the setting, and no secret."""


class UnsupportedCredentials(BadCredentials):
    """The configured security is not available here, or needs a library that the text names."""
