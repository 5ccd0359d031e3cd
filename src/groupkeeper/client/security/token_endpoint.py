"""Tokens from an OAuth 2.0 server by client credentials (RFC 6749, 4.4), or from a file: KIP-768, KIP-1139."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, NamedTuple

from groupkeeper.client.errors import AuthenticationFailed, IllegalArgument
from groupkeeper.client.security.tokens import expiry_of
from groupkeeper.security.mechanisms.mechanism import NAME, LoginModule, Token

URL = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE = "sasl.oauthbearer.scope"

_MAX_ANSWER_BYTES = 1024 * 1024
_ATTEMPTS = 3
_FIRST_PAUSE_S = 0.1


def shown(url: str) -> str:
    """The URL without user and password, for texts."""
    return re.sub(r"(?<=//)[^/?#]*@", "…@", url)


class _Retriable(Exception):
    """The server could not be reached, or replied with a server error."""


class TokenEndpoint(NamedTuple):
    """A token server, and the parameters of requests for a token."""

    url: str
    client_id: str
    client_secret: str
    scope: str | None
    """None: the request names none."""
    encodes_header: bool
    """Whether id and secret are URL-encoded in the request's header (sasl.oauthbearer.header.urlencode)."""
    timeout_s: float
    tls: Mapping[str, str]
    """The ssl.* options of the login module (KIP-768)."""

    def __repr__(self) -> str:
        return f"TokenEndpoint({shown(self.url)})"

    async def fetch(self) -> Token:
        """A new token. Raises AuthenticationFailed with the reason."""
        last = ""
        for attempt in range(_ATTEMPTS):
            try:
                return await asyncio.to_thread(self._ask)
            except _Retriable as problem:
                last = str(problem)
            await asyncio.sleep(_FIRST_PAUSE_S * 2**attempt)
        raise self._failed(last)

    def _failed(self, reason: str) -> AuthenticationFailed:
        return AuthenticationFailed(f"no token from {URL}={shown(self.url)}: {reason}")

    def _ask(self) -> Token:
        request = urllib.request.Request(self.url, self._form(), headers=self._headers(), method="POST")
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if self.url.startswith("https:"):
            from groupkeeper.client.security.tls import tls_context

            handlers.append(urllib.request.HTTPSHandler(context=tls_context(self.tls)))
        opener = urllib.request.build_opener(*handlers)
        try:
            with opener.open(request, timeout=self.timeout_s) as response:
                return self._token_in(response.read(_MAX_ANSWER_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                text = f"it replies {error.code} {error.reason}{_explanation(error.read(_MAX_ANSWER_BYTES))}"
            if error.code >= 500 or error.code in (408, 429):
                raise _Retriable(text) from None
            hint = f": check {CLIENT_ID} and {CLIENT_SECRET}" if error.code in (400, 401, 403) else ""
            raise self._failed(text + hint) from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise _Retriable(f"it cannot be reached: {reason}") from None

    def _form(self) -> bytes:
        form = {"grant_type": "client_credentials"}
        if self.scope:
            form["scope"] = self.scope
        return urllib.parse.urlencode(form).encode()

    def _headers(self) -> dict[str, str]:
        names = (self.client_id, self.client_secret)
        if self.encodes_header:
            names = (urllib.parse.quote_plus(self.client_id), urllib.parse.quote_plus(self.client_secret))
        credentials = base64.b64encode(":".join(names).encode()).decode()
        return {"Authorization": f"Basic {credentials}", "Accept": "application/json", "Cache-Control": "no-cache"}

    def _token_in(self, body: bytes) -> Token:
        try:
            response = json.loads(body)
            value = response["access_token"]
            lifetime_s = response.get("expires_in")
        except (ValueError, TypeError, KeyError):
            raise self._failed("its reply has no access_token") from None
        if not isinstance(value, str) or not value:
            raise self._failed("its reply has no access_token")
        expires_s = expiry_of(value)
        if expires_s is None and isinstance(lifetime_s, int | float):
            expires_s = time.time() + lifetime_s
        return Token(value, expires_s)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the credentials are for this address only."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


def _explanation(body: bytes) -> str:
    """`error` and `error_description` (RFC 6749, 5.2) of a reply in one line, "" without them."""
    try:
        response = json.loads(body)
    except ValueError:
        return ""
    if not isinstance(response, dict):
        return ""
    parts = [str(response[name]) for name in ("error", "error_description") if response.get(name)]
    return " (" + " ".join(": ".join(parts).split())[:300] + ")" if parts else ""


def endpoint_of(properties: Mapping[str, str], module: LoginModule) -> TokenEndpoint:
    """The endpoint that the properties and the login module's options name. Raises IllegalArgument."""
    url = properties[URL].strip()

    def value(name: str, option: str) -> str:
        return properties.get(name, "").strip() or module.options.get(option, "")

    client_id, client_secret = value(CLIENT_ID, "clientId"), value(CLIENT_SECRET, "clientSecret")
    for text, name, option in ((client_id, CLIENT_ID, "clientId"), (client_secret, CLIENT_SECRET, "clientSecret")):
        if not text:
            raise IllegalArgument(f"{URL} needs {name} (or the option {option} in {NAME})")
    return TokenEndpoint(
        url=url,
        client_id=client_id,
        client_secret=client_secret,
        scope=value(SCOPE, "scope") or None,
        encodes_header=properties.get("sasl.oauthbearer.header.urlencode", "").strip().lower() == "true",
        timeout_s=_timeout_s(properties),
        tls={name: text for name, text in module.options.items() if name.startswith("ssl.")},
    )


def _timeout_s(properties: Mapping[str, str]) -> float:
    text = properties.get("sasl.login.read.timeout.ms", "").strip()
    return int(text) / 1000 if text.isdecimal() and int(text) else 10.0


def read_token(url: str) -> Token:
    """The token in a file, by its URL file:///…. Raises AuthenticationFailed."""
    path = urllib.request.url2pathname(urllib.parse.urlsplit(url).path)
    try:
        value = Path(path).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a token"
        raise AuthenticationFailed(f"no token from {URL}={shown(url)}: {reason}") from None
    return Token(value, expiry_of(value))
