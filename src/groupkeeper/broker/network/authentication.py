"""The authentication of a connection (KIP-43, KIP-152), and its reauthentication (KIP-368).

An unauthenticated client may send ApiVersions once, then SaslHandshake, then the messages of the mechanism:
SaslAuthenticate requests after SaslHandshake version 1, bare frames after version 0. As Apache Kafka 4.4.0's
SaslServerAuthenticator.
"""

from __future__ import annotations

from asyncio import get_running_loop, sleep
from collections.abc import Awaitable, Callable
from enum import Enum, auto

from groupkeeper.broker.base import BrokerBase
from groupkeeper.broker.network.closing import CloseConnection
from groupkeeper.broker.network.connection import Connection
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.codec import MalformedMessage, UnsupportedMessageVersion, decode
from groupkeeper.protocol.errors import IllegalSaslState, KafkaError, SaslAuthenticationFailed, UnsupportedSaslMechanism
from groupkeeper.protocol.framing import API_VERSIONS, api_name, decode_request_header, encode_response
from groupkeeper.security.identity import Identity
from groupkeeper.security.mechanisms.mechanism import LoginFailed, LoginRefused, ServerConversation

Serve = Callable[[Connection, bytes], Awaitable[bytes | None]]
Refuse = Callable[[Connection, bytes, KafkaError], bytes | None]

SASL_HANDSHAKE = 17
SASL_AUTHENTICATE = 36
_HANDSHAKE_VERSIONS = range(2)
_AUTHENTICATE_VERSIONS = range(3)
_FRAMED_SINCE = 1
_MIN_REAUTH_INTERVAL_MS = 1000


class NotAuthenticated(CloseConnection):
    """The client could not be authenticated."""

    def __init__(self, reason: str, response: bytes | None = None) -> None:
        super().__init__(reason)
        self.response = response


class _State(Enum):
    BEGINNING = auto()
    """Expects ApiVersions or SaslHandshake."""
    VERSIONS_TOLD = auto()
    """Expects SaslHandshake."""
    AGAIN = auto()
    """An authenticated client has begun reauthentication."""
    OTHER_MECHANISM = auto()
    """An authenticated client has begun reauthentication with another mechanism."""
    FRAMED_TOKENS = auto()
    BARE_TOKENS = auto()
    DONE = auto()


class Authentication:
    """The authentication of one connection.

    Attributes:
        identity: the client's identity; None until it is authenticated.
    """

    def __init__(self, connection: Connection, broker: BrokerBase, serve: Serve, refuse: Refuse) -> None:
        """`serve` answers ApiVersions; `refuse` makes the error response to any request."""
        self.identity: Identity | None = None
        # A client certificate does not authenticate the client here, as in Kafka.
        self._connection = connection
        self._sasl = broker.security.sasl(connection.listener)
        self._serve = serve
        self._refuse = refuse
        self._broker = broker
        self._now_ms = broker.now_ms
        self._state = _State.BEGINNING
        self._mechanism = ""
        self._conversation: ServerConversation | None = None
        self._session_ends_ms: int | None = None
        self._began_again_ms: int | None = None
        self._usual_max_bytes = connection.max_request_bytes
        connection.max_request_bytes = min(self._sasl.max_receive_bytes, self._usual_max_bytes)
        reason = f"it is not authenticated after {self._sasl.timeout_s:g} s (groupkeeper.authentication.timeout.ms)"
        self._timer = get_running_loop().call_later(self._sasl.timeout_s, connection.close, reason)

    def end(self) -> None:
        """Called when the connection is lost."""
        self._timer.cancel()

    def wants(self, frame: bytes) -> bool:
        """Whether a request belongs to the authentication. Raises `CloseConnection` when the session has expired."""
        if self._state is not _State.DONE:
            return True
        if self._session_ends_ms is None:
            return False
        now_ms = self._now_ms()
        may_begin = self._began_again_ms is None or now_ms - self._began_again_ms >= _MIN_REAUTH_INTERVAL_MS
        if int.from_bytes(frame[:2]) == SASL_HANDSHAKE and may_begin:
            self._began_again_ms = now_ms
            self._state = _State.AGAIN
            return True
        if now_ms > self._session_ends_ms:
            raise CloseConnection("the session has expired, and the client has not authenticated again")
        return False

    async def answer(self, frame: bytes) -> bytes | None:
        """The response to the client's frame. Raises `NotAuthenticated` after a delay, which makes guessing slow."""
        try:
            return await self._answer(frame)
        except NotAuthenticated as failure:
            self._timer.cancel()
            self._audit(None, str(failure))
            await sleep(self._sasl.failure_delay_s)
            raise

    async def _answer(self, frame: bytes) -> bytes | None:
        if self._state is _State.BARE_TOKENS:
            return await self._bare_token(frame)
        if self._state is _State.OTHER_MECHANISM:
            raise NotAuthenticated("authentication again by another mechanism")
        try:
            header, position = decode_request_header(frame)
            if self._state is _State.FRAMED_TOKENS:
                return await self._framed_token(frame, header, position)
            if header.request_api_key == API_VERSIONS:
                return await self._versions(frame)
            if header.request_api_key == SASL_HANDSHAKE:
                return self._handshake(frame, header, position)
        except (MalformedMessage, UnsupportedMessageVersion) as error:
            raise NotAuthenticated(f"no SASL handshake: {error}") from None
        raise NotAuthenticated(f"a {api_name(header.request_api_key)} request before authentication")

    async def _versions(self, frame: bytes) -> bytes | None:
        if self._state is not _State.BEGINNING:
            raise NotAuthenticated("ApiVersions is out of place here")
        response = await self._serve(self._connection, frame)
        # The error code follows the size and the correlation id: after an error a client may retry with another
        # version.
        if response is not None and not any(response[8:10]):
            self._state = _State.VERSIONS_TOLD
        return response

    def _handshake(self, frame: bytes, header: m.RequestHeader, position: int) -> bytes:
        version = header.request_api_version
        if version not in _HANDSHAKE_VERSIONS:
            raise NotAuthenticated(f"SaslHandshake version {version} is not supported")
        mechanism = decode(m.SaslHandshakeRequest, frame, version, position).mechanism
        # Reauthentication uses the current configuration: a password may have been removed.
        self._sasl = self._broker.security.sasl(self._connection.listener)
        response = m.SaslHandshakeResponse(0, self._sasl.mechanisms)
        if mechanism not in self._sasl.mechanisms:
            response.error_code = UnsupportedSaslMechanism.code
            encoded = encode_response(header.correlation_id, response, version)
            raise NotAuthenticated("the requested SASL mechanism is not enabled", encoded)
        if self._state is _State.AGAIN and mechanism != self._mechanism:
            self._state = _State.OTHER_MECHANISM
        else:
            self._mechanism = mechanism
            self._conversation = self._sasl.begin(mechanism)
            self._state = _State.FRAMED_TOKENS if version >= _FRAMED_SINCE else _State.BARE_TOKENS
        return encode_response(header.correlation_id, response, version)

    async def _framed_token(self, frame: bytes, header: m.RequestHeader, position: int) -> bytes:
        key, version = header.request_api_key, header.request_api_version
        if key != SASL_AUTHENTICATE:
            reason = f"a {api_name(key)} request instead of SaslAuthenticate"
            raise NotAuthenticated(reason, self._refuse(self._connection, frame, IllegalSaslState()))
        if version not in _AUTHENTICATE_VERSIONS:
            raise NotAuthenticated(f"SaslAuthenticate version {version} is not supported")
        token = decode(m.SaslAuthenticateRequest, frame, version, position).auth_bytes
        try:
            challenge, lifetime_ms = await self._converse(token)
        except LoginFailed as failure:
            response = m.SaslAuthenticateResponse(SaslAuthenticationFailed.code, self._error_message(failure), b"")
            raise NotAuthenticated(
                f"SASL {self._mechanism}: {failure.reason}", encode_response(header.correlation_id, response, version)
            ) from None
        response = m.SaslAuthenticateResponse(0, "", challenge, lifetime_ms)
        return encode_response(header.correlation_id, response, version)

    async def _bare_token(self, token: bytes) -> bytes:
        try:
            challenge, _ = await self._converse(token)
        except LoginFailed as failure:
            raise NotAuthenticated(f"SASL {self._mechanism}: {failure.reason}") from None
        return len(challenge).to_bytes(4) + challenge

    async def _converse(self, token: bytes) -> tuple[bytes, int]:
        """The response, and the time in milliseconds until the client must reauthenticate (0: never)."""
        conversation = self._conversation
        assert conversation is not None
        challenge = await conversation.answer(token)
        identity = conversation.identity
        if identity is None:
            return challenge, 0
        known = self.identity
        if known is not None and known.principal != identity.principal:
            raise LoginRefused(
                "Cannot change principals during re-authentication from "
                f"{_dotted(known.principal)}: {_dotted(identity.principal)}"
            )
        self.identity = self._connection.identity = identity
        self._audit(identity.principal)
        self._conversation = None
        self._state = _State.DONE
        self._timer.cancel()
        self._connection.max_request_bytes = self._usual_max_bytes
        return challenge, self._begin_session(identity)

    def _audit(self, principal: str | None, reason: str | None = None) -> None:
        audit = self._broker.audit
        if audit is not None:
            connection = self._connection
            audit.login(connection.listener, connection.client_host, self._mechanism, principal, reason)

    def _begin_session(self, identity: Identity) -> int:
        now_ms, session_ms = self._now_ms(), self._sasl.session_ms(self._mechanism)
        ends = [now_ms + session_ms] if session_ms else []
        if identity.expires_ms is not None:
            ends.append(identity.expires_ms)
        self._session_ends_ms = min(ends, default=None)
        return 0 if self._session_ends_ms is None else max(self._session_ends_ms - now_ms, 0)

    def _error_message(self, failure: LoginFailed) -> str:
        if isinstance(failure, LoginRefused):
            return failure.text
        what = "authentication" if self.identity is None else "re-authentication"
        return f"Authentication failed during {what} due to invalid credentials with SASL mechanism {self._mechanism}"


def _dotted(principal: str) -> str:
    return principal.replace(":", ".", 1)
