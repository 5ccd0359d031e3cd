"""Delegation tokens (KIP-48): short-lived secrets that stand for a principal, kept in the data directory."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from groupkeeper.broker.settings.config import Config
from groupkeeper.broker.settings.features import METADATA_VERSION, TOKENS_SINCE, feature_level
from groupkeeper.broker.storage.directory import StorageDirectory, random_uuid
from groupkeeper.broker.storage.journal import registry
from groupkeeper.protocol import errors
from groupkeeper.protocol.uuids import uuid_text
from groupkeeper.security.identity import Identity
from groupkeeper.security.mechanisms.mechanism import Credential, Login
from groupkeeper.security.mechanisms.scram import new_credential

_SECRET = "delegation.token.secret.key"
_LARGEST = 2**63 - 1


class Token(NamedTuple):
    """A delegation token. Principals are `Type:name`, times are milliseconds since the epoch."""

    token_id: str
    owner: str
    """The principal of clients that log in with the token."""
    requester: str
    """The principal that created it."""
    renewers: tuple[str, ...]
    """Other principals that may renew and expire it."""
    issued_ms: int
    max_ms: int
    """The latest expiry that a renewal can give."""
    expires_ms: int
    """When it expires unless it is renewed."""

    def may_be_renewed_by(self, principal: str) -> bool:
        """Whether a principal owns it, or is one of its renewers."""
        return principal in (self.owner, *self.renewers)

    def is_seen_by(self, principal: str) -> bool:
        """Whether a principal may renew it, or created it."""
        return principal == self.requester or self.may_be_renewed_by(principal)

    def has_expired(self, now_ms: int) -> bool:
        """Whether it has expired."""
        return min(self.max_ms, self.expires_ms) < now_ms


class DelegationTokens:
    """The delegation tokens of one broker. Changes are on disk before they take effect. Secrets are not on disk: they
    are derived from the secret in the settings.
    """

    def __init__(self, directory: StorageDirectory, config: Config, now_ms: Callable[[], int]) -> None:
        """Reads the stored tokens. Raises `InvalidSetting`."""
        self._config = config
        self._now_ms = now_ms
        self._secret = config.given.get(_SECRET, "").encode()
        self._swept_ms = now_ms()
        self._by_id: dict[str, Token] = {}
        self._credentials: dict[tuple[str, str], Credential] = {}
        self._journal = registry(directory, "tokens.journal", "delegation tokens", is_private=True)
        self._journal.replay(self._take)
        self._journal.begin(token._asdict() for token in self._by_id.values())

    def create(self, owner: str, requester: str, renewers: Iterable[str], max_lifetime_ms: int) -> Token:
        """A new token; without a lifetime (0 or less) it gets the maximum lifetime. Raises
        `DelegationTokenAuthDisabled`, `UnsupportedVersion`, `KafkaStorageError`.
        """
        self._require_changes()
        self._sweep()
        now_ms = self._now_ms()
        longest = self._config.delegation_token_max_lifetime_ms
        max_ms = _sum(now_ms, min(longest, max_lifetime_ms) if max_lifetime_ms > 0 else longest)
        expires_ms = min(max_ms, _sum(now_ms, self._config.delegation_token_expiry_time_ms))
        token = Token(uuid_text(random_uuid()), owner, requester, tuple(renewers), now_ms, max_ms, expires_ms)
        self._write(token)
        return token

    def renew(self, secret: bytes, principal: str, period_ms: int) -> int:
        """Renews a token, and returns its new expiry: `period_ms` from now, at most `delegation.token.expiry.time.ms`;
        0 or less: as long as possible. Raises `DelegationTokenNotFound`, `DelegationTokenExpired`,
        `DelegationTokenOwnerMismatch`, `DelegationTokenAuthDisabled`, `UnsupportedVersion`, `KafkaStorageError`.
        """
        token, now_ms = self._find(secret), self._now_ms()
        if token.has_expired(now_ms):
            raise errors.DelegationTokenExpired
        if not token.may_be_renewed_by(principal):
            raise errors.DelegationTokenOwnerMismatch
        longest = self._config.delegation_token_expiry_time_ms
        return self._end(token, now_ms + (min(longest, period_ms) if period_ms > 0 else longest))

    def expire(self, secret: bytes, principal: str, period_ms: int) -> int:
        """Lets a token expire `period_ms` from now, and returns its expiry; a negative period removes it at once.
        Raises the errors of `renew`.
        """
        token, now_ms = self._find(secret), self._now_ms()
        if not token.may_be_renewed_by(principal):
            raise errors.DelegationTokenOwnerMismatch
        if period_ms < 0:
            self._remove(token)
            return (
                now_ms - 1
            )  # a token that expires now has not expired yet, and clients may query it within this millisecond
        if token.has_expired(now_ms):
            raise errors.DelegationTokenExpired
        return self._end(token, _sum(now_ms, period_ms))

    def all(self) -> list[Token]:
        """All existing tokens. Raises `DelegationTokenAuthDisabled`, `KafkaStorageError`."""
        self._require_enabled()
        self._sweep()
        return list(self._by_id.values())

    def secret_of(self, token: Token) -> bytes:
        """The secret with which a client logs in; its base64 text is the password."""
        return hmac.digest(self._secret, token.token_id.encode(), "sha512")

    def login(self, mechanism: str, token_id: str) -> Login | None:
        """The login of a token; None if the token is unknown or has expired."""
        token = self._by_id.get(token_id)
        if token is None or not self._secret or token.has_expired(self._now_ms()):
            return None
        key = (mechanism, token_id)
        credential = self._credentials.get(key)
        if credential is None:
            password = base64.b64encode(self.secret_of(token)).decode()
            credential = self._credentials[key] = new_credential(mechanism, password)
        return Login(credential, Identity(token.owner, token.expires_ms, is_by_token=True))

    def _require_enabled(self) -> None:
        if not self._secret:  # the settings lack that from which tokens are made
            raise errors.DelegationTokenAuthDisabled

    def _require_changes(self) -> None:
        self._require_enabled()
        if feature_level(self._config, METADATA_VERSION) < TOKENS_SINCE:
            raise errors.UnsupportedVersion

    def _find(self, secret: bytes) -> Token:
        self._require_changes()
        self._sweep()
        for token in self._by_id.values():
            if hmac.compare_digest(self.secret_of(token), secret):
                return token
        raise errors.DelegationTokenNotFound

    def _end(self, token: Token, when_ms: int) -> int:
        expires_ms = min(token.max_ms, when_ms)
        self._write(token._replace(expires_ms=expires_ms))
        return expires_ms

    def _sweep(self) -> None:
        """Removes expired tokens, at most once per configured interval."""
        now_ms = self._now_ms()
        if now_ms - self._swept_ms < self._config.delegation_token_expiry_check_interval_ms:
            return
        self._swept_ms = now_ms
        for token in [one for one in self._by_id.values() if one.has_expired(now_ms)]:
            self._remove(token)

    def _write(self, token: Token) -> None:
        self._journal.write(token._asdict())
        self._by_id[token.token_id] = token

    def _remove(self, token: Token) -> None:
        entry = {"token_id": token.token_id}
        self._journal.write(entry)
        self._take(entry)

    def _take(self, entry: Mapping[str, Any]) -> None:
        token_id = entry["token_id"]
        if "owner" in entry:
            self._by_id[token_id] = Token(**{**entry, "renewers": tuple(entry["renewers"])})
            return
        self._by_id.pop(token_id, None)
        for mechanism, other in list(self._credentials):
            if other == token_id:
                del self._credentials[mechanism, other]


def _sum(now_ms: int, duration_ms: int) -> int:
    return min(now_ms + duration_ms, _LARGEST)
