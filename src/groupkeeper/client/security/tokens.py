"""Sources of OAUTHBEARER tokens, and how long to use a token."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Mapping

from groupkeeper.client.errors import IllegalArgument
from groupkeeper.security.mechanisms.mechanism import NAME, LoginModule, Token, TokenSource

TokenProvider = Callable[[], Awaitable[str]]
"""A callback of the program that gives a token; called again when the last one has used up most of its life."""

_UNSECURED = "unsecuredLogin"
_EXTENSION = "extension_"


def from_callback(provider: TokenProvider) -> TokenSource:
    """A source that calls the program's provider."""

    async def fetch() -> Token:
        value = await provider()
        return Token(value, expiry_of(value))

    return TokenSource(fetch)


def expiry_of(token: str) -> float | None:
    """The expiry of a JSON web token in seconds since the epoch; None when it has none, or is another kind of token."""
    parts = token.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        return None


def unsecured_token(module: LoginModule, now_s: float) -> Token:
    """The unsigned token that OAuthBearerLoginModule makes by itself from its options: for tests of clusters only."""
    options = {
        name.removeprefix(_UNSECURED): value for name, value in module.options.items() if name.startswith(_UNSECURED)
    }
    principal_name = options.pop("PrincipalClaimName", "sub")
    scope_name = options.pop("ScopeClaimName", "scope")
    lifetime = options.pop("LifetimeSeconds", "3600")
    claims: dict[str, object] = {}
    for name, value in options.items():
        _add_claim(claims, name, value)
    if not isinstance(claims.get(principal_name), str):
        option = f"{_UNSECURED}StringClaim_{principal_name}"
        raise IllegalArgument(f"{NAME}: {module.title} has no {option}, nor is sasl.oauthbearer.token.endpoint.url set")
    expires_s = now_s + _number(f"{_UNSECURED}LifetimeSeconds", lifetime)
    claims.setdefault("iat", int(now_s * 1000) / 1000)  # whole ms, as in brokers' clocks: must not be in their future
    claims.setdefault("exp", expires_s)
    if scope_name in claims and not isinstance(claims[scope_name], str | list):
        raise IllegalArgument(f"{NAME}: the claim {scope_name} must be a string or a list")
    parts = [_encoded({"alg": "none"}), _encoded(claims), ""]
    return Token(".".join(parts), expires_s)


def _add_claim(claims: dict[str, object], option: str, value: str) -> None:
    kind, _, name = option.partition("Claim_")
    if not name:
        raise IllegalArgument(f"{NAME}: the option {_UNSECURED}{option} is not known")
    if kind == "String":
        claims[name] = value
    elif kind == "Number":
        claims[name] = _number(f"{_UNSECURED}{option}", value)
    elif kind == "List" and value:
        # The value's first character separates the elements.
        claims[name] = value[1:].split(value[0])
    else:
        raise IllegalArgument(f"{NAME}: the option {_UNSECURED}{option} is not known, or empty")


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise IllegalArgument(f"{NAME}: {name} must be a number") from None


def _encoded(claims: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


def extensions_of(module: LoginModule) -> dict[str, str]:
    """The SASL extensions among the options (KIP-342). Raises IllegalArgument."""
    found = {
        name.removeprefix(_EXTENSION): value for name, value in module.options.items() if name.startswith(_EXTENSION)
    }
    for name, value in found.items():
        if not (name.isascii() and name.isalpha() and name != "auth" and value.isascii() and value.isprintable()):
            raise IllegalArgument(f"{NAME}: the extension {name} is not of letters with printable characters")
    return found
