"""Unsecured JSON web tokens for tests, which Kafka accepts unless configured otherwise."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any

from groupkeeper.base_error import InvalidSetting
from groupkeeper.security.mechanisms.mechanism import BadToken, TokenSubject

_OPTION = "unsecuredValidator"


class UnsecuredTokens:
    """Validates tokens without a signature, by the options of an OAuthBearerLoginModule."""

    def __init__(self, options: Mapping[str, str], now_ms: Callable[[], int]) -> None:
        """Raises `InvalidSetting`."""
        self._now_ms = now_ms
        self._principal = options.get(f"{_OPTION}PrincipalClaimName", "").strip() or "sub"
        self._scope = options.get(f"{_OPTION}ScopeClaimName", "").strip() or "scope"
        self._required = options.get(f"{_OPTION}RequiredScope", "").split()
        skew = options.get(f"{_OPTION}AllowableClockSkewMs", "").strip() or "0"
        if not skew.isdecimal():
            raise InvalidSetting(f"{_OPTION}AllowableClockSkewMs={skew}: expected milliseconds, 0 or more")
        self._skew_ms = int(skew)

    async def subject_of(self, token: str) -> TokenSubject:
        """Raises `BadToken`."""
        header, claims = parts_of(token)
        if header.get("alg") != "none":
            raise BadToken("the algorithm of an unsecured token must be 'none'")
        if not token.endswith("."):
            raise BadToken("an unsecured token has no signature")
        name = claims.get(self._principal)
        if not isinstance(name, str) or not name.strip():
            raise BadToken(f"the claim {self._principal} is missing, or no text")
        expires_s, issued_s = number_in(claims, "exp"), number_in(claims, "iat")
        if expires_s is None:
            raise BadToken("the claim exp is missing")
        now_ms = self._now_ms()
        if issued_s is not None and 1000 * issued_s > now_ms + self._skew_ms:
            raise BadToken("it was issued in the future")
        if now_ms - self._skew_ms >= 1000 * expires_s:
            raise BadToken("it has expired")
        if issued_s is not None and expires_s <= issued_s:
            raise BadToken("it ends before it was issued")
        scopes = self._scopes(claims)
        if any(scope not in scopes for scope in self._required):
            raise BadToken("its scope is not enough", f"[{', '.join(self._required)}]")
        return TokenSubject(name, round(expires_s * 1000))

    def _scopes(self, claims: Mapping[str, Any]) -> list[str]:
        found = claims.get(self._scope)
        texts = [found] if isinstance(found, str) else found if isinstance(found, list) else []
        return [str(text).strip() for text in texts]


def parts_of(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims of a token, without a check of its signature. Raises `BadToken`."""
    parts = token.split(".")
    if len(parts) != 3 or not parts[0] or not parts[1]:
        raise BadToken("a token has three parts with dots between")
    return _object(parts[0]), _object(parts[1])


def _object(part: str) -> dict[str, Any]:
    try:
        padded = part.replace("-", "+").replace("_", "/") + "=" * (-len(part) % 4)
        found = json.loads(base64.b64decode(padded, validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise BadToken("a part of it is no JSON in base64") from None
    if not isinstance(found, dict):
        raise BadToken("a part of it is no JSON object")
    return found


def number_in(claims: Mapping[str, Any], name: str) -> float | None:
    """The time in a claim, in seconds since the epoch; None if the claim is missing. Raises `BadToken`."""
    found = claims.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not -1e15 < found < 1e15:
        raise BadToken(f"the claim {name} is no time")
    return float(found)
