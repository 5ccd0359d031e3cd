"""DescribeUserScramCredentials and AlterUserScramCredentials, as ScramImage and ScramControlManager of Kafka 4.4.0."""

from __future__ import annotations

from collections import Counter

from groupkeeper.broker.apis._access import require_cluster
from groupkeeper.broker.authorizer import Operation
from groupkeeper.broker.network.long_requests import in_turns
from groupkeeper.broker.settings.features import METADATA_VERSION, SCRAM_SINCE, feature_level
from groupkeeper.coordinator.refusals import own_message
from groupkeeper.protocol import errors
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.security.mechanisms.mechanism import Credential
from groupkeeper.security.mechanisms.scram import (
    HASH_BY_MECHANISM,
    MAX_STORED_ITERATIONS,
    MIN_ITERATIONS,
    credential_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from groupkeeper.broker.broker import Broker
    from groupkeeper.broker.call import Call
    from groupkeeper.broker.security.credentials import ScramCredentials

_CODES = {mechanism: code for code, mechanism in enumerate(HASH_BY_MECHANISM, 1)}
_MECHANISMS = {code: mechanism for mechanism, code in _CODES.items()}


async def handle_describe(
    broker: Broker, call: Call, request: m.DescribeUserScramCredentialsRequest
) -> m.DescribeUserScramCredentialsResponse:
    require_cluster(broker, call, Operation.DESCRIBE)
    credentials = broker.security.credentials
    requested = Counter(one.name for one in request.users or ()) or Counter(credentials.users())
    results = []
    async for user, times in in_turns(requested.items()):
        iterations = credentials.iterations(user)
        if times > 1:
            error: KafkaError = errors.DuplicateResource(
                f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
            )
        elif not iterations:
            error = errors.ResourceNotFound(f"Attempt to describe a user credential that does not exist: {user}")
        else:
            infos = [m.CredentialInfo(_CODES[mechanism], count) for mechanism, count in iterations.items()]
            results.append(m.DescribeUserScramCredentialsResult(user, credential_infos=infos))
            continue
        results.append(m.DescribeUserScramCredentialsResult(user, error.code, error.message))
    return m.DescribeUserScramCredentialsResponse(results=results)


def refuse_describe(
    call: Call, request: m.DescribeUserScramCredentialsRequest, error: KafkaError
) -> m.DescribeUserScramCredentialsResponse:
    results = [m.DescribeUserScramCredentialsResult("", error.code, error.message) for _ in request.users or ()]
    return m.DescribeUserScramCredentialsResponse(error_code=error.code, error_message=error.message, results=results)


async def handle_alter(
    broker: Broker, call: Call, request: m.AlterUserScramCredentialsRequest
) -> m.AlterUserScramCredentialsResponse:
    require_cluster(broker, call, Operation.ALTER)
    is_supported = feature_level(broker.config, METADATA_VERSION) >= SCRAM_SINCE
    credentials = broker.security.credentials
    changes: dict[str, tuple[tuple[str, str], Credential | None]] = {}
    refused: dict[str, KafkaError] = {}
    async for one in in_turns(_changes(request)):
        if one.name in refused:
            continue
        if changes.pop(one.name, None) is not None:
            refused[one.name] = errors.DuplicateResource(
                "A user credential cannot be altered twice in the same request"
            )
            continue
        try:
            if not is_supported:
                raise errors.UnsupportedVersion("The current metadata.version does not support SCRAM")
            changes[one.name] = _change(credentials, one)
        except KafkaError as error:
            refused[one.name] = error
    if changes:
        credentials.change(dict(changes.values()))
    done = [m.AlterUserScramCredentialsResult(name, error_message=None) for name in changes]
    return m.AlterUserScramCredentialsResponse(results=done + [_failed(name, error) for name, error in refused.items()])


def refuse_alter(
    call: Call, request: m.AlterUserScramCredentialsRequest, error: KafkaError
) -> m.AlterUserScramCredentialsResponse:
    names = dict.fromkeys(one.name for one in _changes(request))
    return m.AlterUserScramCredentialsResponse(results=[_failed(name, error) for name in names])


def _changes(
    request: m.AlterUserScramCredentialsRequest,
) -> list[m.ScramCredentialDeletion | m.ScramCredentialUpsertion]:
    return [*request.deletions, *request.upsertions]


def _change(
    credentials: ScramCredentials, one: m.ScramCredentialDeletion | m.ScramCredentialUpsertion
) -> tuple[tuple[str, str], Credential | None]:
    if not one.name:
        raise errors.UnacceptableCredential("Username must not be empty")
    mechanism = _MECHANISMS.get(one.mechanism)
    if mechanism is None:
        raise errors.UnsupportedSaslMechanism("Unknown SCRAM mechanism")
    key = (mechanism, one.name)
    if isinstance(one, m.ScramCredentialDeletion):
        if credentials.get(*key) is None:
            raise errors.ResourceNotFound("Attempt to delete a user credential that does not exist")
        return key, None
    if one.iterations < MIN_ITERATIONS:
        raise errors.UnacceptableCredential("Too few iterations")
    if one.iterations > MAX_STORED_ITERATIONS:
        raise errors.UnacceptableCredential("Too many iterations")
    if not one.salted_password:
        raise errors.UnknownServerError
    return key, credential_of(mechanism, one.salted_password, one.salt, one.iterations)


def _failed(name: str, error: KafkaError) -> m.AlterUserScramCredentialsResult:
    return m.AlterUserScramCredentialsResult(name, error.code, own_message(error))
