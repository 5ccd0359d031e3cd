"""Login by OpenID Connect: the code flow with PKCE, as Authlib has it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request

from groupkeeper.live.toml_tables import BadTable, TomlTable, as_text, given_secret, read_toml, secret_of
from groupkeeper.web.access.people import is_name

DONE = "/login/oidc/done"
"""The path to which the provider sends users back."""

BEGUN_S = 600
_MOST_BEGUN = 1000
_TIMEOUT_S = 10.0
_ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
"""Those by which only the provider can sign."""


class LoginFailed(Exception):
    """Why nobody was logged in, for the user."""


class OidcSettings(NamedTuple):
    """``client_secret`` "": a public client. ``public_url``: of this server for users; "": as a request names it."""

    issuer: str
    client_id: str
    client_secret: str
    scope: str
    user_claim: str
    teams_claim: str
    public_url: str


class OidcUser(NamedTuple):
    """``target``: the path that was asked for first."""

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
        table.take("user_claim", as_text, "preferred_username"),
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
    """Logins that have begun and have not ended are held in memory, each bound to its browser by a cookie."""

    def __init__(self, settings: OidcSettings) -> None:
        """Raises ImportError where Authlib is not installed."""
        from authlib.common.errors import AuthlibBaseError
        from authlib.integrations.starlette_client import OAuth
        from httpx2 import HTTPError
        from joserfc.errors import JoseError

        self._errors = (AuthlibBaseError, JoseError, HTTPError, ValueError)
        self._settings = settings
        self._begun: dict[str, tuple[float, str, dict[str, Any]]] = {}
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
        """The address where the user logs in, and the value of the cookie. Raises LoginFailed."""
        session: dict[str, Any] = {}
        request.scope["session"] = session
        base = self._settings.public_url or str(request.base_url).rstrip("/")
        try:
            metadata = await self._provider.load_server_metadata()
            if str(metadata.get("issuer", "")).rstrip("/") != self._settings.issuer:
                raise LoginFailed(f"{self._settings.issuer} says that it is {metadata.get('issuer')}")
            offered = metadata.get("id_token_signing_alg_values_supported", ["RS256"])
            metadata["id_token_signing_alg_values_supported"] = [each for each in offered if each in _ALGORITHMS]
            answer = await self._provider.authorize_redirect(request, base + DONE)
        except self._errors as error:
            raise LoginFailed(f"{self._settings.issuer} cannot be asked: {type(error).__name__}: {error}") from None
        now_s = time.monotonic()
        self._begun = {key: begun for key, begun in self._begun.items() if now_s - begun[0] < BEGUN_S}
        if len(self._begun) >= _MOST_BEGUN:
            del self._begun[next(iter(self._begun))]
        cookie = secrets.token_urlsafe(32)
        self._begun[cookie] = (now_s, target, session)
        return answer.headers["location"], cookie

    async def end(self, request: Request, cookie: str) -> OidcUser:
        """Who the provider says has logged in. Raises LoginFailed."""
        begun_s, target, session = self._begun.pop(cookie, (0.0, "/", {}))
        if not session or time.monotonic() - begun_s >= BEGUN_S:
            raise LoginFailed("the login did not begin in this browser, or too long ago")
        request.scope["session"] = session
        wanted = {
            "iss": {"value": self._provider.server_metadata["issuer"]},
            "aud": {"value": self._settings.client_id},
        }
        try:
            token = await self._provider.authorize_access_token(request, claims_options=wanted)
        except self._errors as error:
            raise LoginFailed(f"{self._settings.issuer} let nobody in: {error}") from None
        claims = token.get("userinfo") or {}
        name = claims.get(self._settings.user_claim) or ""
        if not isinstance(name, str) or not is_name(name):
            raise LoginFailed(f"{self._settings.issuer} gives no name of the user as {self._settings.user_claim}")
        teams = claims.get(self._settings.teams_claim) or ()
        teams = [teams] if isinstance(teams, str) else teams
        return OidcUser(name, tuple(each for each in teams if isinstance(each, str)), target)
