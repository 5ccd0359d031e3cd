"""The interface of SASL mechanisms: names, options, a conversation of bytes for each end, and the inputs from each."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol

from groupkeeper.base_error import GroupkeeperError, InvalidSetting
from groupkeeper.security.errors import BadCredentials
from groupkeeper.security.identity import Identity

NAME = "sasl.jaas.config"
JAAS_FILE = "java.security.auth.login.config"
"""A property of Java. Kafka takes it from the command line, our broker from its settings."""
REFRESH_WINDOW = 0.8
"""The fraction of a token's lifetime for which it is used: sasl.login.refresh.window.factor of Kafka's clients."""

_USER = "user_"


class MechanismFailed(GroupkeeperError):
    """At the client: the broker's message is wrong, or a credential cannot be encoded. The text holds no secret."""


class LoginFailed(Exception):
    """At the broker: the login fails. `reason`, without secrets, is only logged: it may reveal that a user exists."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LoginRefused(LoginFailed):
    """At the broker: the login fails, and `text` is sent to the client."""

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(reason or text)
        self.text = text


class ClientConversation:
    """The client's end of one login."""

    async def first(self) -> bytes:
        """The client's first message. Raises MechanismFailed."""
        raise NotImplementedError

    def answer(self, challenge: bytes) -> bytes | None:
        """The client's next message; None: the exchange is complete. Raises MechanismFailed."""
        return None

    def refused(self) -> None:
        """Called when the broker refuses the login."""


class ServerConversation:
    """The broker's end of one login."""

    identity: Identity | None = None
    """None until the login has succeeded."""

    async def answer(self, message: bytes) -> bytes:
        """The broker's reply to the client's message. Raises `LoginRefused`, `LoginFailed`."""
        raise NotImplementedError


def require_same(authorization_id: str, username: str) -> None:
    """Checks that an authorization id is empty or the user's name. Raises `LoginRefused`."""
    if authorization_id and authorization_id != username:
        raise LoginRefused(
            "Authentication failed: Client requested an authorization id that is different from username"
        )


class LoginModule(NamedTuple):
    """`class_name` has no package. Error texts show `title` instead, as it may be a misplaced password."""

    class_name: str
    options: Mapping[str, str]

    @property
    def title(self) -> str:
        """The class name, if it looks like one of a login module; else a substitute."""
        return self.class_name if self.class_name.endswith("LoginModule") else "the login module"

    def __repr__(self) -> str:
        return f"LoginModule({self.title}, options: {len(self.options)})"  # names and values may be secrets


class Credential(NamedTuple):
    """The data that a broker stores for a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return "Credential(…)"


class Login(NamedTuple):
    """A credential and its principal; the principal of a delegation token is its owner."""

    credential: Credential
    identity: Identity


class Token(NamedTuple):
    """A token. `expires_s`: its expiry in seconds since the epoch, None when it has none."""

    value: str
    expires_s: float | None

    def __repr__(self) -> str:
        return f"Token(…, expires_s={self.expires_s})"


class TokenSource:
    """Returns the current token, and calls `fetch` for a new one before it expires."""

    __slots__ = ("_fetch", "_refresh_s", "_token")

    def __init__(self, fetch: Callable[[], Awaitable[Token]]) -> None:
        self._fetch = fetch
        self._token: Token | None = None
        self._refresh_s = 0.0

    async def current(self) -> str:
        now_s = time.time()
        if self._token is None or now_s >= self._refresh_s:
            self._token = await self._fetch()
            expires_s = self._token.expires_s
            # Without an expiry, a token is fetched for each authentication.
            self._refresh_s = now_s if expires_s is None else now_s + (expires_s - now_s) * REFRESH_WINDOW
        return self._token.value

    def forget(self) -> None:
        """Drops the current token, after the broker refused it."""
        self._token = None


class BadToken(ValueError):
    """The token is invalid; the text has the reason. `scope`: the required scopes if it lacks some, else empty."""

    def __init__(self, why: str, scope: str = "") -> None:
        super().__init__(why)
        self.scope = scope


class TokenSubject(NamedTuple):
    """The subject of a token, and its expiry (milliseconds since the epoch)."""

    name: str
    expires_ms: int


class TokenValidator(Protocol):
    """How a broker judges tokens."""

    async def subject_of(self, token: str) -> TokenSubject:
        """Raises `BadToken`."""


class ClientLogin(NamedTuple):
    """The inputs of a mechanism from a client's settings."""

    mechanism: Mechanism
    module: Callable[[], LoginModule]
    """Reads the login module. Raises `BadCredentials`, also without one."""
    tokens: Callable[[], tuple[TokenSource, Mapping[str, str]]]
    """Tokens, and the extensions to send with them. Raises errors of the client."""

    def __repr__(self) -> str:
        return f"ClientLogin({self.mechanism.name})"  # its fields may be secret

    def needed(self) -> list[str]:
        """The values of the options that the mechanism needs, in their order. Raises `BadCredentials`."""
        module = self.module()
        for name in self.mechanism.needs:
            if not module.options.get(name):
                raise BadCredentials(f'{NAME}: {module.title} has no {name}: add {name}="…" before the semicolon')
        return [module.options[name] for name in self.mechanism.needs]

    def option(self, name: str) -> str:
        """One of the other options; empty if it isn't given. Raises `BadCredentials`."""
        assert name in self.mechanism.options, f"{name} is no option of {self.mechanism.name} in MECHANISMS"
        return self.module().options.get(name, "")


class ServerLogin(NamedTuple):
    """The inputs of a mechanism from the settings of a broker's listener."""

    mechanism: Mechanism
    listener: str
    users: Mapping[str, str]
    """Passwords by user, as given to the broker."""
    module: Callable[[], LoginModule | None]
    """Reads the login module; None: there is none. Raises `InvalidSetting`."""
    find: Callable[[str, bool], Login | None]
    """The stored credential of a user or, with True, of a delegation token by its id; None: there is none."""
    tokens: Callable[[], TokenValidator]
    """Raises `InvalidSetting`."""

    def __repr__(self) -> str:
        return f"ServerLogin({self.mechanism.name})"  # its fields may be secret

    def passwords(self) -> Mapping[str, str]:
        """The passwords of `users`, and of options like `user_alice`. Raises `InvalidSetting` without both."""
        assert self.mechanism.has_users, f"{self.mechanism.name}: no password in `needs` of its line in MECHANISMS"
        module = self.module()
        if module is None and not self.users:
            raise self.lacks("users", f'{_USER}alice="…"')
        options = {} if module is None else module.options
        own = {name.removeprefix(_USER): text for name, text in options.items() if name.startswith(_USER)}
        return {**self.users, **own}

    def lacks(self, what: str, example: str) -> InvalidSetting:
        """The error to raise without `what`, which options like `example` give."""
        name = f"listener.name.{self.listener.lower()}.{self.mechanism.name.lower()}.{NAME}"
        return InvalidSetting(
            f"listener {self.listener}: {self.mechanism.name} has no {what}: set {name} to "
            f"{self.mechanism.class_name} required {example}; (or {JAAS_FILE} to a file with that in its section "
            "KafkaServer)"
        )


class Mechanism(NamedTuple):
    """One SASL mechanism."""

    name: str
    """As in sasl.mechanism."""
    login_module: str
    """The login module's class in Java, below org.apache.kafka.common.security."""
    needs: tuple[str, ...]
    """The options without which a client cannot log in; with a password, users of the broker log in by it."""
    client: Callable[[ClientLogin], Callable[[], ClientConversation]]
    """Checks a client's settings, and returns a factory of conversations, one for each login."""
    server: Callable[[ServerLogin], Callable[[], ServerConversation]]
    """Checks the settings of a broker's listener, and returns a factory of conversations."""
    options: tuple[str, ...] = ()
    """More options of a client that error texts may name."""
    family: str = ""
    """The name that it has together with siblings; empty: none."""
    check: str = ""
    """The parts to check when a login is refused; empty: the options that it needs."""

    @property
    def has_users(self) -> bool:
        """Whether users with passwords log in with it (`--add-user`)."""
        return "password" in self.needs

    @property
    def class_name(self) -> str:
        """Its login module without the package."""
        return self.login_module.rpartition(".")[2]

    @property
    def way_out(self) -> str:
        """Advice for a refused login."""
        options = f"{' and '.join(self.needs)} in {NAME}" if self.needs else "the broker's log"
        return f"check {self.check or options}"
