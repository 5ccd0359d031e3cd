"""The broker's side of SASL for the scripted broker, with the mechanisms of the embedded one."""

from collections.abc import Callable, Mapping

from tests.unit.client.scripted_broker import HangUp, ScriptedBroker
from tests.unit.security.logins import SAMPLES, login_module

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.primitives import RootMessage
from groupkeeper.security.identity import Identity
from groupkeeper.security.jaas import parse_jaas
from groupkeeper.security.mechanisms import MECHANISMS
from groupkeeper.security.mechanisms.mechanism import (
    BadToken,
    Credential,
    Login,
    LoginFailed,
    LoginRefused,
    ServerConversation,
    ServerLogin,
    TokenSubject,
)
from groupkeeper.security.mechanisms.scram import new_credential

Start = Callable[[], ServerConversation]
"""Begins one authentication."""


def start(
    mechanism: str, password: str = "", *, credential: Credential | None = None, tokens: tuple[str, ...] = ()
) -> Start:
    """Of alice, with a password, its SCRAM credential, or tokens."""

    class Accepted:
        async def subject_of(self, token: str) -> TokenSubject:
            if token not in tokens:
                raise BadToken("unknown")
            return TokenSubject("alice", 2**50)

    def find(name: str, is_token: bool) -> Login | None:
        found = credential or new_credential(mechanism, password)
        return Login(found, Identity("User:alice")) if name == "alice" else None

    options = SAMPLES[mechanism].listener
    module = None if options is None else parse_jaas(login_module(mechanism, options))
    row = MECHANISMS[mechanism]
    return row.server(ServerLogin(row, "L", {"alice": password}, lambda: module, find, Accepted))


class SaslBroker(ScriptedBroker):
    """Answers ListGroups with one group, to clients that have authenticated only.

    `lifetime_ms` is the session's, 0 for ever. `versions` narrows the SASL requests.
    """

    def __init__(
        self,
        starts: Mapping[str, Start],
        *,
        lifetime_ms: int = 0,
        versions: Mapping[str, tuple[int, int] | None] | None = None,
        handshake_error: int = 0,
        **options: object,
    ) -> None:
        handlers = {
            "SaslHandshake": self._answer_handshake,
            "SaslAuthenticate": self._answer_authenticate,
            "ListGroups": self._answer_list_groups,
        }
        super().__init__(handlers=handlers, ranges=versions, answer_token=self._step, **options)  # type: ignore[arg-type]
        self.authentications = 0
        self._starts = starts
        self._begun: dict[int, ServerConversation] = {}
        self._lifetime_ms = lifetime_ms
        self._handshake_error = handshake_error
        self._authenticated: set[int] = set()
        metadata = self.handlers["Metadata"]

        def guarded(message: RootMessage, version: int) -> object:
            self._check()
            return metadata(message, version)

        self.handlers["Metadata"] = guarded  # type: ignore[assignment]

    def _check(self) -> None:
        if self.seen[-1].connection not in self._authenticated:
            raise HangUp

    def _answer_handshake(self, message: m.SaslHandshakeRequest, version: int) -> m.SaslHandshakeResponse:
        offered = list(self._starts)
        if message.mechanism in offered:
            self._begun[self.seen[-1].connection] = self._starts[message.mechanism]()
        if self._handshake_error:
            return m.SaslHandshakeResponse(self._handshake_error)
        return m.SaslHandshakeResponse(0 if message.mechanism in offered else 33, offered)

    async def _step(self, token: bytes) -> tuple[bytes, bool]:
        """A token in a bare frame: refusing is hanging up."""
        try:
            return await self._converse(token)
        except LoginFailed:
            raise HangUp from None

    async def _converse(self, token: bytes) -> tuple[bytes, bool]:
        """The answer, and whether the client is authenticated."""
        connection = self.seen[-1].connection
        conversation = self._begun[connection]
        answer = await conversation.answer(token)
        if conversation.identity is not None:
            self.authentications += 1
            self._authenticated.add(connection)
        return answer, conversation.identity is not None

    async def _answer_authenticate(
        self, message: m.SaslAuthenticateRequest, version: int
    ) -> m.SaslAuthenticateResponse:
        try:
            answer, _ = await self._converse(message.auth_bytes)
        except LoginFailed as failure:
            text = failure.text if isinstance(failure, LoginRefused) else "invalid credentials"
            return m.SaslAuthenticateResponse(58, f"Authentication failed: {text}")
        return m.SaslAuthenticateResponse(0, None, answer, self._lifetime_ms if version >= 1 else 0)

    def _answer_list_groups(self, message: RootMessage, version: int) -> m.ListGroupsResponse:
        self._check()
        return m.ListGroupsResponse(groups=[m.ListedGroup("g")])
