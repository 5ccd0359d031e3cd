"""The user of a request: by a token, by a session that a token began, or by the header of a trusted proxy."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import NamedTuple

from starlette.requests import Request

from groupkeeper.operations.plans.recorder import user as system_user
from groupkeeper.web.access.roles import Rights, Roles

LEAST_TOKEN = 16
"""The least number of characters in a token; a shorter one could be guessed."""

_LONGEST_NAME = 200
SESSION_S = 12 * 3600
_MOST_SESSIONS = 1000
_COOKIE = "groupkeeper"


class BadTokens(ValueError):
    """The file is not a file of tokens. The text never contains a token."""


class Person(NamedTuple):
    """The user of a request. `session`: the session, "" for none. `is_known` False: not logged in."""

    name: str
    rights: Rights
    session: str = ""
    is_known: bool = True


class TokenOwner(NamedTuple):
    """A user, and the hash of the user's token."""

    name: str
    digest: bytes


ANYBODY = Person("", Rights(None), is_known=False)
"""The user of a request where no login is configured: may see everything and change nothing."""

NOBODY = Person("", Rights(()), is_known=False)
"""Who is not logged in, where that is needed: may see nothing."""


class PageTokens:
    """The hashes of tokens, with the names of their owners."""

    def __init__(self, names_by_token: Mapping[str, str]) -> None:
        self.owners = [TokenOwner(name, _digest(token)) for token, name in names_by_token.items()]

    def owner(self, token: str) -> TokenOwner | None:
        """The owner of a token. Takes the same time for every token."""
        given = _digest(token)
        found = [owner for owner in self.owners if hmac.compare_digest(owner.digest, given)]
        return found[0] if found else None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def read_tokens(path: str) -> PageTokens:
    """The tokens of a file: each in a row of its own, after the name of its owner; one alone is the system user's.

    Raises BadTokens, OSError.
    """
    with open(path, encoding="utf-8") as file:
        try:
            rows = [(number, text.split()) for number, text in enumerate(file, 1)]
        except UnicodeDecodeError:
            raise BadTokens(f"{path}: expected text in UTF-8") from None
    found: dict[str, str] = {}
    for number, words in rows:
        if not words or words[0].startswith("#"):
            continue
        if len(words) > 2:
            raise BadTokens(f"{path}, row {number}: expected a name and a token")
        if len(words[-1]) < LEAST_TOKEN:
            raise BadTokens(f"{path}, row {number}: the token is too short: expected {LEAST_TOKEN} characters or more")
        if words[-1] in found:
            raise BadTokens(f"{path}, row {number}: the token is listed twice")
        found[words[-1]] = words[0] if len(words) == 2 else system_user()
    if not found:
        raise BadTokens(f"{path}: there is no token")
    return PageTokens(found)


class Proxy(NamedTuple):
    """Trusted proxies: peers in these networks, which name the user in `header`."""

    header: str
    networks: Sequence[IPv4Network | IPv6Network]

    def user(self, request: Request) -> str | None:
        """The user named by the header; None: its sender isn't trusted, or it isn't one valid name."""
        given = request.headers.getlist(self.header)
        if len(given) != 1 or request.client is None or not self._trusts(request.client.host):
            return None
        name = given[0].encode("latin-1").decode("utf-8", "replace").strip()
        return name if is_name(name) else None

    def _trusts(self, host: str) -> bool:
        try:
            address = ip_address(host)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self.networks)


def is_name(text: str) -> bool:
    """Whether the text can be a user's name."""
    return 0 < len(text) <= _LONGEST_NAME and text.isprintable() and "\ufffd" not in text


def networks_of(texts: Sequence[str]) -> list[IPv4Network | IPv6Network]:
    """Addresses and networks. Raises ValueError."""
    return [ip_network(text) for text in texts]


class _Session(NamedTuple):
    """A session. `began_with`: the token's owner; None: another login. `until_s`: on the monotonic clock."""

    name: str
    teams: tuple[str, ...]
    began_with: TokenOwner | None
    until_s: float


class Access:
    """Finds the user of a request. Without `tokens`, `proxy` and `has_oidc` no user is known. `is_open`: every
    client is ANYBODY.
    """

    def __init__(
        self,
        roles: Roles,
        tokens: PageTokens | None = None,
        proxy: Proxy | None = None,
        *,
        is_open: bool,
        has_oidc: bool = False,
    ) -> None:
        self.has_tokens = tokens is not None
        self.has_login = self.has_tokens or has_oidc
        self.is_open = is_open
        self.changes = roles.changes
        self._roles = roles
        self._tokens = tokens
        self._proxy = proxy
        self._sessions: dict[str, _Session] = {}
        self._key = secrets.token_bytes(32)

    def take_roles(self, roles: Roles) -> None:
        """Uses other roles from now on."""
        self._roles = roles

    def take_tokens(self, tokens: PageTokens) -> None:
        """Uses other tokens from now on. Sessions that began with a removed token end."""
        self._tokens = tokens
        known = {None, *tokens.owners}
        self._sessions = {key: session for key, session in self._sessions.items() if session.began_with in known}

    def forget_views(self) -> None:
        """Drops the kept views, as a cluster has a new snapshot."""
        self._roles.views.forget()

    def person(self, request: Request, *, has_session: bool = True) -> Person | None:
        """The user, None: the request may not see anything. `has_session` False: cookies do not count."""
        name, session = self._name(request, has_session=has_session)
        if name is not None:
            teams = self._sessions[session].teams if session else ()
            return Person(name, self._roles.of(name, teams), session)
        return ANYBODY if self.is_open else None

    def _name(self, request: Request, *, has_session: bool) -> tuple[str | None, str]:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._tokens is not None:
            owner = self._tokens.owner(token.strip())
            return (None if owner is None else owner.name), ""
        if self._proxy is not None and (name := self._proxy.user(request)) is not None:
            return name, ""
        session = request.cookies.get(cookie_name(request), "") if has_session else ""
        begun = self._sessions.get(session)
        return (begun.name, session) if begun is not None and time.monotonic() < begun.until_s else (None, "")

    def log_in(self, token: str) -> str | None:
        """Begins a session of the token's owner; None: the token is unknown."""
        owner = None if self._tokens is None else self._tokens.owner(token)
        return None if owner is None else self.begin(owner.name, began_with=owner)

    def begin(self, name: str, teams: tuple[str, ...] = (), *, began_with: TokenOwner | None = None) -> str:
        """Begins a session of a user who has logged in."""
        if len(self._sessions) >= _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        session = secrets.token_urlsafe(32)
        self._sessions[session] = _Session(name, teams, began_with, time.monotonic() + SESSION_S)
        return session

    def log_out(self, person: Person) -> None:
        """End the session."""
        self._sessions.pop(person.session, None)

    def seal(self, person: Person) -> str:
        """The seal in forms of a person's pages, which forms of other sites lack."""
        return hmac.new(self._key, f"{person.session}\n{person.name}".encode(), hashlib.sha256).hexdigest()

    def is_sealed(self, person: Person, seal: str) -> bool:
        """Whether a form is from a page of this person."""
        return hmac.compare_digest(self.seal(person).encode(), seal.encode("utf-8", "surrogatepass"))


def cookie_name(request: Request) -> str:
    """The cookie's name, with the port: servers on one host share cookies, and must not end others' sessions."""
    server = request.scope.get("server")
    return f"{_COOKIE}-{server[1]}" if server and server[1] else _COOKIE
