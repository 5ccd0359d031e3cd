"""Creates, renews, expires and describes delegation tokens, as Kafka 4.4.0."""

from __future__ import annotations

from groupkeeper.broker.authorizer import Operation, ResourceType
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.security.identity import ANONYMOUS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.security.tokens import DelegationTokens, Token
    from groupkeeper.protocol.primitives import RootMessage

_NO_TIME = -1
_WITH_REQUESTER = 3


def _require_proved(call: Call) -> None:
    """Raises `DelegationTokenRequestNotAllowed` unless the client is authenticated, and not by a token."""
    is_unproved = call.security_protocol == "SSL" and call.principal == ANONYMOUS
    if is_unproved or call.identity.is_by_token or call.security_protocol == "PLAINTEXT":
        raise errors.DelegationTokenRequestNotAllowed


def _time_of(error: errors.KafkaError) -> int:
    """The time in an error response: −1 for errors of Kafka's broker, 0 for those of its controller."""
    return _NO_TIME if isinstance(error, _OF_THE_BROKER) else 0


_OF_THE_BROKER = (
    errors.DelegationTokenRequestNotAllowed,
    errors.DelegationTokenAuthorizationFailed,
    errors.InvalidPrincipalType,
)


async def handle_renew(broker: Broker, call: Call, request: m.RenewDelegationTokenRequest) -> RootMessage:
    _require_proved(call)
    expires_ms = broker.security.tokens.renew(request.hmac, call.principal, request.renew_period_ms)
    return m.RenewDelegationTokenResponse(0, expires_ms)


def refuse_renew(call: Call, request: m.RenewDelegationTokenRequest, error: errors.KafkaError) -> RootMessage:
    return m.RenewDelegationTokenResponse(error.code, _time_of(error))


async def handle_expire(broker: Broker, call: Call, request: m.ExpireDelegationTokenRequest) -> RootMessage:
    _require_proved(call)
    expires_ms = broker.security.tokens.expire(request.hmac, call.principal, request.expiry_time_period_ms)
    return m.ExpireDelegationTokenResponse(0, expires_ms)


def refuse_expire(call: Call, request: m.ExpireDelegationTokenRequest, error: errors.KafkaError) -> RootMessage:
    return m.ExpireDelegationTokenResponse(error.code, _time_of(error))


def _owner(call: Call, request: m.CreateDelegationTokenRequest) -> str:
    name = request.owner_principal_name
    return f"{request.owner_principal_type}:{name}" if name else call.principal


async def handle_create(broker: Broker, call: Call, request: m.CreateDelegationTokenRequest) -> RootMessage:
    _require_proved(call)
    owner = _owner(call, request)
    may = owner == call.principal or broker.authorizer.allows(call, Operation.CREATE_TOKENS, ResourceType.USER, owner)
    if not may:
        raise errors.DelegationTokenAuthorizationFailed
    if any(one.principal_type != "User" for one in request.renewers):
        raise errors.InvalidPrincipalType
    renewers = [f"{one.principal_type}:{one.principal_name}" for one in request.renewers]
    tokens = broker.security.tokens
    token = tokens.create(owner, call.principal, renewers, request.max_lifetime_ms)
    return m.CreateDelegationTokenResponse(0, *_fields(call, tokens, token))


def refuse_create(call: Call, request: m.CreateDelegationTokenRequest, error: errors.KafkaError) -> RootMessage:
    when = _time_of(error)
    return m.CreateDelegationTokenResponse(
        error.code, *_parts(_owner(call, request)), *_requester(call, call.principal), when, when, when
    )


async def handle_describe(broker: Broker, call: Call, request: m.DescribeDelegationTokenRequest) -> RootMessage:
    _require_proved(call)
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
    described = m.DescribedDelegationToken(*_fields(call, tokens, token))
    described.renewers = [m.DescribedDelegationTokenRenewer(*_parts(one)) for one in token.renewers]
    return described


def _fields(call: Call, tokens: DelegationTokens, token: Token) -> tuple[Any, ...]:
    """What both responses tell of a token, in their order."""
    times = token.issued_ms, token.expires_ms, token.max_ms
    principals = *_parts(token.owner), *_requester(call, token.requester)
    return *principals, *times, token.token_id, tokens.secret_of(token)


def _requester(call: Call, principal: str) -> tuple[str, str]:
    return _parts(principal) if call.api_version >= _WITH_REQUESTER else ("", "")


def _parts(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name
