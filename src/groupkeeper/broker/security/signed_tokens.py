"""Validates signed JSON web tokens (signature, times, issuer, audience) like OAuthBearerValidatorCallbackHandler."""

from __future__ import annotations

from typing import NamedTuple

import jwt

from groupkeeper.broker.security.oauth import number_in, parts_of
from groupkeeper.security.mechanisms.mechanism import BadToken, TokenSubject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from groupkeeper.broker.security.jwks import Key, KeySource

_ALGORITHMS = frozenset(
    f"{family}{bits}" for family in ("RS", "PS", "ES", "HS") for bits in (256, 384, 512)
)  # "none" is not allowed
_KINDS = {"RS": "RSA", "PS": "RSA", "ES": "EC", "HS": "oct"}
_OPTIONS: Any = {"enforce_minimum_key_length": True}


class Expected(NamedTuple):
    """The required claims of a token."""

    issuer: str = ""
    """The token's `iss`; empty: any."""
    audiences: tuple[str, ...] = ()
    """The token's `aud` has one of these; empty: it must have none, or with `is_for_anyone` may have any."""
    clock_skew_ms: int = 30_000
    """By how much the issuer's clock may differ."""
    scope_claim: str = "scope"
    """The claim with its scopes."""
    subject_claim: str = "sub"
    """The claim with its principal."""
    is_for_anyone: bool = False


class SignedTokens:
    """Validates tokens with the keys of their issuers."""

    def __init__(self, keys: KeySource, expected: Expected, now_ms: Callable[[], int]) -> None:
        self._keys = keys
        self._expected = expected
        self._now_ms = now_ms

    async def subject_of(self, token: str) -> TokenSubject:
        """Raises `BadToken`."""
        header, claims = parts_of(token)
        await self._check_signature(token, header)
        self._check_times(claims)
        self._check_source(claims)
        _check_scopes(claims.get(self._expected.scope_claim))
        name = claims.get(self._expected.subject_claim)
        if not isinstance(name, str) or not name.strip():
            raise BadToken(f"the claim {self._expected.subject_claim} is missing, or no text")
        return TokenSubject(name.strip(), round(1000 * (number_in(claims, "exp") or 0)))

    async def _check_signature(self, token: str, header: Mapping[str, Any]) -> None:
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in _ALGORITHMS:
            raise BadToken("it is not signed by an algorithm for signatures")
        if "crit" in header:
            raise BadToken("its header has a critical part that is not known")
        if key_id is not None and not isinstance(key_id, str):
            raise BadToken("the id of its key is no text")
        found = _keys_for(await self._keys.keys(), algorithm, key_id)
        if not found:
            found = _keys_for(await self._keys.keys_again(key_id or ""), algorithm, key_id)
        if not found:
            raise BadToken("the key set has no key for it")
        if not any(_is_signed(token, key, algorithm) for key in found):
            raise BadToken("its signature is wrong")

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        expires_s, issued_s, begins_s = (number_in(claims, name) for name in ("exp", "iat", "nbf"))
        if expires_s is None or issued_s is None:
            raise BadToken(f"the claim {'iat' if issued_s is None else 'exp'} is missing")
        if min(expires_s, issued_s) < 0:
            raise BadToken("a time of it is negative")
        now_ms, skew_ms = self._now_ms(), self._expected.clock_skew_ms
        if now_ms - skew_ms >= 1000 * expires_s:
            raise BadToken("it has expired")
        if begins_s is not None and now_ms + skew_ms < 1000 * begins_s:
            raise BadToken("it is not valid yet")
        if expires_s < max(issued_s, begins_s or 0):
            raise BadToken("it ends before it was issued")

    def _check_source(self, claims: Mapping[str, Any]) -> None:
        for name in ("iss", "jti", "sub"):
            if not isinstance(claims.get(name, ""), str):
                raise BadToken(f"the claim {name} is no text")
        issuer, audience = claims.get("iss"), claims.get("aud")
        if self._expected.issuer and issuer != self._expected.issuer:
            raise BadToken("its issuer is not the expected one")
        if self._expected.is_for_anyone and not self._expected.audiences:
            return
        audiences = [audience] if isinstance(audience, str) else [] if audience is None else audience
        if not isinstance(audiences, list) or not all(isinstance(one, str) for one in audiences):
            raise BadToken("the claim aud is no text")
        if (audience is not None or self._expected.audiences) and not {*audiences} & {*self._expected.audiences}:
            raise BadToken("its audience is not an expected one")


def _keys_for(keys: Iterable[Key], algorithm: str, key_id: str | None) -> list[Key]:
    kind = _KINDS[algorithm[:2]]
    found = [
        key
        for key in keys
        if key.get("kty") == kind and key.get("use", "sig") == "sig" and key_id in (None, key.get("kid"))
    ]
    # A key's algorithm is used only to choose among several keys, as in Kafka.
    return found if len(found) < 2 else [key for key in found if key.get("alg", algorithm) == algorithm]


def _is_signed(token: str, key: Key, algorithm: str) -> bool:
    try:
        jwt.PyJWS(options=_OPTIONS).decode(token, jwt.PyJWK(dict(key), algorithm), algorithms=[algorithm])
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):  # an entry of a key set may be no valid key
        return False
    return True


def _check_scopes(found: object) -> None:
    scopes = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    texts = [scope.strip() for scope in scopes if isinstance(scope, str)]
    if len(texts) < len(scopes) or not all(texts) or len({*texts}) < len(texts):
        raise BadToken("a scope of it is empty, no text, or there twice")
