"""Delegation tokens: created, renewed, expired and described as Kafka 4.4.0 does it."""

from __future__ import annotations

from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.security.identity import ANONYMOUS
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.security.tokens import DelegationTokens, Token
    from groupkeeper.protocol.primitives import RootMessage

_NO_TIME = -1
_WITH_REQUESTER = 3


async def handle(broker: Broker, call: Call) -> RootMessage:
    if not _may_ask(call):
        raise errors.DelegationTokenRequestNotAllowed
    tokens = broker.security.tokens
    match call.message:
        case m.CreateDelegationTokenRequest() as request:
            return _create(broker, call, request)
        case m.RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms):
            return m.RenewDelegationTokenResponse(0, tokens.renew(secret, call.principal, period_ms))
        case m.ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms):
            return m.ExpireDelegationTokenResponse(0, tokens.expire(secret, call.principal, period_ms))
        case m.DescribeDelegationTokenRequest() as request:
            return _describe(broker, call, request)
    raise AssertionError(call.message)


def refuse(call: Call, error: errors.KafkaError) -> RootMessage:
    # Kafka's broker, which refuses before its controller does, has no time then; its controller has 0.
    when = _NO_TIME if isinstance(error, _OF_THE_BROKER) else 0
    match call.message:
        case m.CreateDelegationTokenRequest() as request:
            return m.CreateDelegationTokenResponse(
                error.code, *_parts(_owner(call, request)), *_requester(call, call.principal), when, when, when
            )
        case m.RenewDelegationTokenRequest():
            return m.RenewDelegationTokenResponse(error.code, when)
        case m.ExpireDelegationTokenRequest():
            return m.ExpireDelegationTokenResponse(error.code, when)
    return m.DescribeDelegationTokenResponse(error.code)


_OF_THE_BROKER = (
    errors.DelegationTokenRequestNotAllowed,
    errors.DelegationTokenAuthorizationFailed,
    errors.InvalidPrincipalType,
)


def _may_ask(call: Call) -> bool:
    """Only a client that proved who it is, and not by a token."""
    if call.identity.is_by_token or call.security_protocol == "PLAINTEXT":
        return False
    return call.security_protocol != "SSL" or call.principal != ANONYMOUS


def _owner(call: Call, request: m.CreateDelegationTokenRequest) -> str:
    name = request.owner_principal_name
    return f"{request.owner_principal_type}:{name}" if name else call.principal


def _create(broker: Broker, call: Call, request: m.CreateDelegationTokenRequest) -> m.CreateDelegationTokenResponse:
    owner = _owner(call, request)
    may = owner == call.principal or broker.authorizer.allows(call, Operation.CREATE_TOKENS, ResourceType.USER, owner)
    if not may:
        raise errors.DelegationTokenAuthorizationFailed
    if any(one.principal_type != "User" for one in request.renewers):
        raise errors.InvalidPrincipalType
    renewers = [f"{one.principal_type}:{one.principal_name}" for one in request.renewers]
    tokens = broker.security.tokens
    token = tokens.create(owner, call.principal, renewers, request.max_lifetime_ms)
    return m.CreateDelegationTokenResponse(
        0,
        *_parts(owner),
        *_requester(call, call.principal),
        token.issued_ms,
        token.expires_ms,
        token.max_ms,
        token.token_id,
        tokens.secret_of(token),
    )


def _describe(
    broker: Broker, call: Call, request: m.DescribeDelegationTokenRequest
) -> m.DescribeDelegationTokenResponse:
    tokens = broker.security.tokens
    known = tokens.all()
    owners = request.owners
    if owners is not None:
        wanted = [f"{one.principal_type}:{one.principal_name}" for one in owners]
        known = [token for token in known if any(map(token.is_seen_by, wanted))]
    seen = [token for token in known if _may_see(broker, call, token)]
    return m.DescribeDelegationTokenResponse(tokens=[_described(call, tokens, token) for token in seen])


def _may_see(broker: Broker, call: Call, token: Token) -> bool:
    allows = broker.authorizer.allows
    return (
        token.is_seen_by(call.principal)
        or allows(call, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or allows(call, Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )


def _described(call: Call, tokens: DelegationTokens, token: Token) -> m.DescribedDelegationToken:
    return m.DescribedDelegationToken(
        *_parts(token.owner),
        *_requester(call, token.requester),
        token.issued_ms,
        token.expires_ms,
        token.max_ms,
        token.token_id,
        tokens.secret_of(token),
        [m.DescribedDelegationTokenRenewer(*_parts(one)) for one in token.renewers],
    )


def _requester(call: Call, principal: str) -> tuple[str, str]:
    return _parts(principal) if call.api_version >= _WITH_REQUESTER else ("", "")


def _parts(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name
