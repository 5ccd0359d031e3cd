"""SASL authentication of a connection in Kafka's frames (KIP-43, KIP-152), and reauthentication (KIP-368)."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TypeVar

from groupkeeper.client.addresses import Address
from groupkeeper.client.connection import Connection
from groupkeeper.client.errors import (
    AuthenticationFailed,
    CallTimedOut,
    ClientError,
    ConnectionFailed,
    IllegalArgument,
    UnsupportedSecurity,
)
from groupkeeper.client.security import tokens
from groupkeeper.client.security.tls import reads_credentials
from groupkeeper.client.security.transport import Security
from groupkeeper.client.versions import version_of
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import IllegalSaslState, SaslAuthenticationFailed, UnsupportedSaslMechanism, error_for
from groupkeeper.protocol.primitives import RootMessage
from groupkeeper.security.jaas import parse_jaas
from groupkeeper.security.mechanisms import MECHANISMS
from groupkeeper.security.mechanisms.mechanism import (
    NAME,
    ClientConversation,
    ClientLogin,
    LoginModule,
    Mechanism,
    MechanismFailed,
    Token,
    TokenSource,
)

A = TypeVar("A", bound=RootMessage)

_RENEW_AFTER = (0.85, 0.95)
"""The client reauthenticates at a random point within this fraction of a session's lifetime, as Kafka's clients do."""

_MAX_STEPS = 8


class SaslSecurity(Security):
    """SASL over a connection that `inner` has made: PLAINTEXT or TLS."""

    is_sasl = True

    def __init__(
        self, inner: Security, mechanism: Mechanism, begin: Callable[[], ClientConversation], username: str = ""
    ) -> None:
        """`username` is empty where the mechanism has none."""
        self.principal = f"User:{username}" if username else ""
        self._inner = inner
        self._mechanism = mechanism
        self.begin = begin
        self.hang_up_hint = inner.hang_up_hint

    def tls(self) -> ssl.SSLContext | None:
        return self._inner.tls()

    def explain(self, address: Address, error: OSError) -> ClientError | None:
        return self._inner.explain(address, error)

    async def diagnose(self, address: Address, host: str, timeout_s: float) -> ClientError | None:
        return await self._inner.diagnose(address, host, timeout_s)

    async def authenticate(self, connection: Connection, timeout_s: float) -> None:
        """Authenticate the client. Sets `connection.renew_at_s`."""
        async with asyncio.timeout(timeout_s) as clock:
            try:
                await self._inner.authenticate(connection, timeout_s)
                await self._authenticate(connection, timeout_s)
            except MechanismFailed as failure:
                raise self._failed(connection, str(failure), None) from None
            except (CallTimedOut, asyncio.CancelledError) as error:
                if isinstance(error, CallTimedOut) or clock.expired():
                    raise ConnectionFailed(
                        f"{connection.address}: no SASL {self._mechanism.name} reply in time"
                    ) from None
                raise

    async def _authenticate(self, connection: Connection, timeout_s: float) -> None:
        conversation = self.begin()
        token: bytes | None = await conversation.first()
        handshake = m.SaslHandshakeRequest(self._mechanism.name)
        version = version_of(m.SaslHandshakeRequest, connection.versions)
        response = await connection.ask(handshake, version, m.SaslHandshakeResponse, timeout_s)
        if response.error_code:
            raise self._refused_mechanism(connection, response)
        send = self._framed if version >= 1 else self._bare
        lifetime_ms = 0
        for _ in range(_MAX_STEPS):
            assert token is not None
            try:
                challenge, lifetime_ms = await send(connection, token, timeout_s)
            except AuthenticationFailed:
                conversation.refused()
                raise
            token = conversation.answer(challenge)
            if token is None:
                break
        else:
            raise MechanismFailed("the SASL exchange does not end")
        if lifetime_ms > 0:
            from random import uniform

            connection.renew_at_s = asyncio.get_running_loop().time() + lifetime_ms / 1000 * uniform(*_RENEW_AFTER)
        else:
            connection.renew_at_s = None

    async def _framed(self, connection: Connection, token: bytes, timeout_s: float) -> tuple[bytes, int]:
        """One step of the exchange since Kafka 1.0: a request with the token. A refusal has a reason."""
        version = version_of(m.SaslAuthenticateRequest, connection.versions)
        request = m.SaslAuthenticateRequest(token)
        response = await connection.ask(request, version, m.SaslAuthenticateResponse, timeout_s)
        if response.error_code:
            refusal = error_for(response.error_code, response.error_message)
            raise self._failed(connection, str(refusal), refusal)
        return response.auth_bytes, response.session_lifetime_ms

    async def _bare(self, connection: Connection, token: bytes, timeout_s: float) -> tuple[bytes, int]:
        """One step before Kafka 1.0: a frame without header. To refuse, the broker closes the connection."""
        try:
            return await connection.exchange_token(token, timeout_s), 0
        except ConnectionFailed as error:
            refusal = SaslAuthenticationFailed(None)
            raise self._failed(
                connection, "the broker closed the connection, which is how old brokers refuse", refusal
            ) from error

    def _failed(self, connection: Connection, reason: str, refusal: Exception | None) -> AuthenticationFailed:
        mechanism = self._mechanism
        text = f"{connection.address}: SASL {mechanism.name} failed: {' '.join(reason.split())}: {mechanism.way_out}"
        return AuthenticationFailed(text, refusal)

    def _refused_mechanism(self, connection: Connection, response: m.SaslHandshakeResponse) -> AuthenticationFailed:
        address, name = connection.address, self._mechanism.name
        offered = ", ".join(response.mechanisms)
        if response.error_code == UnsupportedSaslMechanism.code:
            message = f"Client SASL mechanism '{name}' not enabled in the server, enabled mechanisms are [{offered}]"
            text = f"{address}: sasl.mechanism={name} is not enabled there: the broker offers {offered or 'none'}"
            return AuthenticationFailed(text, UnsupportedSaslMechanism(message))
        if response.error_code == IllegalSaslState.code:
            message = f"Unexpected handshake request with client mechanism {name}, enabled mechanisms are [{offered}]"
            way_out = "set security.protocol=PLAINTEXT (or SSL), or use the port of a SASL listener"
            return AuthenticationFailed(
                f"{address}: the listener there does not use SASL: {way_out}", IllegalSaslState(message)
            )
        refusal = error_for(response.error_code)
        return AuthenticationFailed(f"{address}: the SASL handshake was refused: {refusal}", refusal)


@reads_credentials()
def sasl_security(
    inner: Security, properties: Mapping[str, str], token_provider: tokens.TokenProvider | None
) -> SaslSecurity:
    """The SASL that the properties configure. Raises IllegalArgument, UnsupportedSecurity."""
    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip()
    if mechanism not in MECHANISMS:
        what = "GSSAPI (Kerberos, the default)" if mechanism == "GSSAPI" else mechanism
        raise UnsupportedSecurity(f"sasl.mechanism={what} is not supported: set one of {', '.join(MECHANISMS)}")
    row = MECHANISMS[mechanism]
    module = cache(partial(_login_module, properties, row))
    begin = row.client(ClientLogin(row, module, partial(_tokens_of, properties, token_provider, module)))
    # The broker gives tokens their principal.
    has_name = row.has_users and module().options.get("tokenauth", "").lower() != "true"
    return SaslSecurity(inner, row, begin, module().options.get("username", "") if has_name else "")


def _login_module(properties: Mapping[str, str], mechanism: Mechanism) -> LoginModule:
    text = properties.get(NAME, "").strip()
    if not text:
        options = "".join(f' {name}="…"' for name in mechanism.needs)
        example = f"org.apache.kafka.common.security.{mechanism.login_module} required{options};"
        raise IllegalArgument(f"{NAME} is not set: sasl.mechanism={mechanism.name} needs it, as in: {example}")
    module = parse_jaas(text)
    wanted = mechanism.class_name
    if module.class_name != wanted:
        raise IllegalArgument(f"{NAME} is for {module.title}, but sasl.mechanism={mechanism.name} needs {wanted}")
    return module


def _tokens_of(
    properties: Mapping[str, str], token_provider: tokens.TokenProvider | None, read_module: Callable[[], LoginModule]
) -> tuple[TokenSource, dict[str, str]]:
    if token_provider is not None:
        has_module = bool(properties.get(NAME, "").strip())
        module = read_module() if has_module else LoginModule("", {})
        return tokens.from_callback(token_provider), tokens.extensions_of(module)
    from groupkeeper.client.security import token_endpoint

    url = properties.get(token_endpoint.URL, "").strip()
    retriever = properties.get("sasl.oauthbearer.jwt.retriever.class", "").strip().rpartition(".")[2]
    if retriever and retriever not in ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever"):
        raise UnsupportedSecurity(
            f"sasl.oauthbearer.jwt.retriever.class={retriever} is not supported: use ClientCredentialsJwtRetriever"
        )
    has_credentials = bool(url) and bool(properties.get(token_endpoint.CLIENT_ID, "").strip())
    if has_credentials and not properties.get(NAME, "").strip():
        module = LoginModule("OAuthBearerLoginModule", {})  # since 4.1 the properties suffice
    else:
        module = read_module()
    extensions = tokens.extensions_of(module)
    scheme = url.partition(":")[0].lower()
    if scheme == "file":
        return TokenSource(lambda: asyncio.to_thread(token_endpoint.read_token, url)), extensions
    if scheme in ("http", "https"):
        return TokenSource(token_endpoint.endpoint_of(properties, module).fetch), extensions
    if url:
        raise IllegalArgument(
            f"{token_endpoint.URL}={token_endpoint.shown(url)}: a URL with https:, http: or file: is needed"
        )
    tokens.unsecured_token(module, time.time())  # raises now rather than when connecting

    async def make() -> Token:
        return tokens.unsecured_token(module, time.time())

    return TokenSource(make), extensions
