"""Delegation tokens: created, renewed, expired and described as Kafka 4.4.0 does it."""

from __future__ import annotations

from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.broker.security.identity import ANONYMOUS
from groupkeeper.protocol.errors import (
    DelegationTokenAuthorizationFailed,
    DelegationTokenRequestNotAllowed,
    InvalidPrincipalType,
    KafkaError,
)
from groupkeeper.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from groupkeeper.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from groupkeeper.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from groupkeeper.protocol.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from groupkeeper.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from groupkeeper.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from groupkeeper.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from groupkeeper.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse

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
        raise DelegationTokenRequestNotAllowed
    tokens = broker.security.tokens
    match call.message:
        case CreateDelegationTokenRequest() as request:
            return _create(broker, call, request)
        case RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms):
            return RenewDelegationTokenResponse(0, tokens.renew(secret, call.principal, period_ms))
        case ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms):
            return ExpireDelegationTokenResponse(0, tokens.expire(secret, call.principal, period_ms))
        case DescribeDelegationTokenRequest() as request:
            return _describe(broker, call, request)
    raise AssertionError(call.message)


def refuse(call: Call, error: KafkaError) -> RootMessage:
    # Kafka's broker, which refuses before its controller does, has no time then; its controller has 0.
    when = _NO_TIME if isinstance(error, _OF_THE_BROKER) else 0
    match call.message:
        case CreateDelegationTokenRequest() as request:
            return CreateDelegationTokenResponse(
                error.code, *_parts(_owner(call, request)), *_requester(call, call.principal), when, when, when
            )
        case RenewDelegationTokenRequest():
            return RenewDelegationTokenResponse(error.code, when)
        case ExpireDelegationTokenRequest():
            return ExpireDelegationTokenResponse(error.code, when)
    return DescribeDelegationTokenResponse(error.code)


_OF_THE_BROKER = (DelegationTokenRequestNotAllowed, DelegationTokenAuthorizationFailed, InvalidPrincipalType)


def _may_ask(call: Call) -> bool:
    """Only a client that proved who it is, and not by a token."""
    if call.identity.is_by_token or call.security_protocol == "PLAINTEXT":
        return False
    return call.security_protocol != "SSL" or call.principal != ANONYMOUS


def _owner(call: Call, request: CreateDelegationTokenRequest) -> str:
    name = request.owner_principal_name
    return f"{request.owner_principal_type}:{name}" if name else call.principal


def _create(broker: Broker, call: Call, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    owner = _owner(call, request)
    may = owner == call.principal or broker.authorizer.allows(call, Operation.CREATE_TOKENS, ResourceType.USER, owner)
    if not may:
        raise DelegationTokenAuthorizationFailed
    if any(one.principal_type != "User" for one in request.renewers):
        raise InvalidPrincipalType
    renewers = [f"{one.principal_type}:{one.principal_name}" for one in request.renewers]
    tokens = broker.security.tokens
    token = tokens.create(owner, call.principal, renewers, request.max_lifetime_ms)
    return CreateDelegationTokenResponse(
        0,
        *_parts(owner),
        *_requester(call, call.principal),
        token.issued_ms,
        token.expires_ms,
        token.max_ms,
        token.token_id,
        tokens.secret_of(token),
    )


def _describe(broker: Broker, call: Call, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
    tokens = broker.security.tokens
    known = tokens.all()
    owners = request.owners
    if owners is not None:
        wanted = [f"{one.principal_type}:{one.principal_name}" for one in owners]
        known = [token for token in known if any(map(token.is_seen_by, wanted))]
    seen = [token for token in known if _may_see(broker, call, token)]
    return DescribeDelegationTokenResponse(tokens=[_described(call, tokens, token) for token in seen])


def _may_see(broker: Broker, call: Call, token: Token) -> bool:
    allows = broker.authorizer.allows
    return (
        token.is_seen_by(call.principal)
        or allows(call, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or allows(call, Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )


def _described(call: Call, tokens: DelegationTokens, token: Token) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        *_parts(token.owner),
        *_requester(call, token.requester),
        token.issued_ms,
        token.expires_ms,
        token.max_ms,
        token.token_id,
        tokens.secret_of(token),
        [DescribedDelegationTokenRenewer(*_parts(one)) for one in token.renewers],
    )


def _requester(call: Call, principal: str) -> tuple[str, str]:
    return _parts(principal) if call.api_version >= _WITH_REQUESTER else ("", "")


def _parts(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name
