"""Login by OpenID Connect: the code flow with PKCE, as Authlib has it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request

from groupkeeper.live.toml_tables import BadTable, TomlTable, as_text, given_secret, read_toml, secret_of
from groupkeeper.web.access.people import is_name

DONE = "/login/oidc/done"
"""The path to which the provider sends users back."""

BEGUN_S = 600
_TIMEOUT_S = 10.0
_ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
"""Signature algorithms with which only the provider can sign."""


_NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_DIRECT, _CIPHER = "dir", "A256GCM"


class OidcFailed(Exception):
    """The login failed; the text, for the user, has the reason. `status`: that of HTTP."""

    def __init__(self, reason: str, status: int = 403) -> None:
        super().__init__(reason)
        self.status = status


class OidcSettings(NamedTuple):
    """The settings."""

    issuer: str
    client_id: str
    client_secret: str
    """"": a public client."""
    scope: str
    user_claim: str
    teams_claim: str
    public_url: str
    """The address of this server; "": as requests name it."""


class OidcUser(NamedTuple):
    """A user who has logged in. `target`: the path requested before the login."""

    name: str
    teams: tuple[str, ...]
    target: str


def read_oidc(path: str) -> OidcSettings:
    """The settings in a file. Raises BadTable, OSError."""
    return read_toml(path, lambda document: _settings(document, Path(path).parent))


def _settings(document: Mapping[str, Any], folder: Path) -> OidcSettings:
    table = TomlTable("the file", document)
    issuer = table.take("issuer", as_text).rstrip("/")
    client_id = table.take("client_id", as_text)
    given = given_secret(table, "client_secret")
    settings = OidcSettings(
        issuer,
        client_id,
        secret_of(table.where, "client_secret", given, folder) if given else "",
        table.take("scope", as_text, "openid profile email"),
        table.take("user_claim", as_text, "sub"),
        table.take("groups_claim", as_text, "groups"),
        table.take("public_url", as_text, "").rstrip("/"),
    )
    table.end()
    for key, url in (("issuer", issuer), ("public_url", settings.public_url)):
        if url and not url.startswith(("https://", "http://")):
            raise BadTable(f"{table.where}: {key}: expected an https:// address")
    if urlsplit(issuer).scheme == "http" and urlsplit(issuer).hostname not in ("localhost", "127.0.0.1", "::1"):
        raise BadTable(f"{table.where}: issuer: expected an https:// address: over http anybody could log in")
    if "openid" not in settings.scope.split():
        raise BadTable(f"{table.where}: scope: openid is missing")
    return settings


class OidcLogin:
    """Logins by a provider. The server keeps no state of logins under way: it is in a cookie of the browser that only
    this server can read and write.
    """

    def __init__(self, settings: OidcSettings) -> None:
        """Raises ImportError where Authlib is not installed."""
        from authlib.common.errors import AuthlibBaseError
        from authlib.integrations.starlette_client import OAuth
        from httpx2 import HTTPError
        from joserfc.errors import JoseError
        from joserfc.jwe import JWERegistry
        from joserfc.jwk import OctKey

        self._refusals = (AuthlibBaseError, JoseError)
        self._away = HTTPError
        # Authlib stumbles over documents of another shape.
        self._unfit = (ValueError, RuntimeError, AttributeError, TypeError, LookupError)
        self._settings = settings
        self._key = OctKey.generate_key(256)
        self._registry = JWERegistry(algorithms=[_DIRECT, _CIPHER])
        kwargs = {"scope": settings.scope, "code_challenge_method": "S256", "timeout": _TIMEOUT_S}
        if not settings.client_secret:
            kwargs["token_endpoint_auth_method"] = "none"
        self._provider = OAuth().register(
            "oidc",
            client_id=settings.client_id,
            client_secret=settings.client_secret or None,
            server_metadata_url=f"{settings.issuer}/.well-known/openid-configuration",
            client_kwargs=kwargs,
        )

    @property
    def issuer(self) -> str:
        return self._settings.issuer

    async def begin(self, request: Request, target: str) -> tuple[str, str]:
        """The address where the user logs in, and the value of the cookie. Raises OidcFailed."""
        session: dict[str, Any] = {}
        request.scope["session"] = session
        base = self._settings.public_url or str(request.base_url).rstrip("/")
        with self._errors_translated():
            await self._learn()
            answer = await self._provider.authorize_redirect(request, base + DONE)
        return answer.headers["location"], self._sealed({"target": target, "session": session})

    async def end(self, request: Request, cookie: str) -> OidcUser:
        """The user who has logged in at the provider. Raises OidcFailed."""
        begun = self._opened(cookie)
        request.scope["session"] = begun["session"]
        with self._errors_translated():
            await self._learn()
            wanted = {"iss": {"value": self._provider.server_metadata["issuer"]},
                      "aud": {"value": self._settings.client_id}}  # fmt: skip
            token = await self._provider.authorize_access_token(request, claims_options=wanted)
        claims = token.get("userinfo") or {}
        name = claims.get(self._settings.user_claim) or ""
        if not isinstance(name, str) or not is_name(name):
            raise OidcFailed(f"{self.issuer} gives no name of the user as {self._settings.user_claim}")
        if self._settings.user_claim == "email" and claims.get("email_verified") is not True:
            raise OidcFailed(f"{self.issuer} has not verified the address {name}")
        teams = claims.get(self._settings.teams_claim) or ()
        teams = [teams] if isinstance(teams, str) else teams
        return OidcUser(name, tuple(each for each in teams if isinstance(each, str)), begun["target"])

    async def _learn(self) -> None:
        """Reads the provider's metadata until it has all that is needed. Raises OidcFailed."""
        metadata = await self._provider.load_server_metadata()
        said = metadata.get("issuer")
        reason = ""
        if str(said or "").rstrip("/") != self.issuer:
            reason = f"{self.issuer} says that it is {said}"
        elif missing := [each for each in _NEEDED if not isinstance(metadata.get(each), str)]:
            reason = f"{self.issuer} says nothing of {', '.join(missing)} in its discovery document"
        offered = metadata.get("id_token_signing_alg_values_supported", ["RS256"])
        metadata["id_token_signing_alg_values_supported"] = [each for each in offered if each in _ALGORITHMS]
        if reason:
            metadata.clear()  # so that it is read again for the next login
            raise OidcFailed(reason, 502)

    @contextmanager
    def _errors_translated(self) -> Iterator[None]:
        """Turns Authlib's exceptions into OidcFailed."""
        try:
            yield
        except self._away as failure:
            reason = f"{self.issuer} cannot be asked: {type(failure).__name__}: {failure}"
            raise OidcFailed(reason, 503) from None
        except self._refusals as refusal:
            raise OidcFailed(f"{self.issuer} has not logged you in: {refusal}") from None
        except self._unfit as problem:
            self._provider.server_metadata.clear()
            reason = f"{self.issuer} answers what makes no sense: {type(problem).__name__}: {problem}"
            raise OidcFailed(reason, 502) from None

    def _sealed(self, begun: Mapping[str, Any]) -> str:
        from joserfc import jwt

        claims = {**begun, "exp": int(time.time()) + BEGUN_S}
        return jwt.encode({"alg": _DIRECT, "enc": _CIPHER}, claims, self._key, registry=self._registry)

    def _opened(self, cookie: str) -> Mapping[str, Any]:
        from joserfc import jwt

        try:
            begun: Mapping[str, Any] = jwt.decode(cookie, self._key, registry=self._registry).claims
            jwt.JWTClaimsRegistry(exp={"essential": True}).validate(dict(begun))
        except (*self._refusals, ValueError):
            raise OidcFailed("the login did not begin in this browser, or too long ago") from None
        return begun
