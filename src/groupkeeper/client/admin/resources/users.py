"""Users with passwords (KIP-554): DescribeUserScramCredentials, AlterUserScramCredentials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from groupkeeper.client.admin.resources.access_types import ScramCredential, ScramMechanism, ScramPassword, ScramRemoval
from groupkeeper.client.admin.resources.controller import NOT_CONTROLLER, ask_controller
from groupkeeper.client.admin.types import Batch, Failure
from groupkeeper.client.batch import batch_of, failure_of
from groupkeeper.client.cluster import Cluster
from groupkeeper.client.errors import IllegalArgument
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import error_for
from groupkeeper.security.scram import new_salt, salted_password

_MECHANISMS = dict(enumerate(ScramMechanism))


async def describe_scram_users(
    cluster: Cluster, names: Iterable[str] | None, timeout_ms: int | None
) -> Batch[str, tuple[ScramCredential, ...]]:
    """Admin.describe_scram_users."""
    deadline = cluster.deadline("describeUserScramCredentials", timeout_ms)
    wanted = None if names is None else list(dict.fromkeys(names))
    if wanted == []:
        return Batch()
    request = m.DescribeUserScramCredentialsRequest(None if wanted is None else [m.UserName(name) for name in wanted])
    answer = await cluster.ask_any(m.DescribeUserScramCredentialsResponse, request, deadline)
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message)
    users: dict[str, tuple[ScramCredential, ...] | Failure] = {
        user.user: (
            error_for(user.error_code, user.error_message)
            if user.error_code
            else tuple(
                ScramCredential(_MECHANISMS.get(each.mechanism, ScramMechanism.UNKNOWN), each.iterations)
                for each in user.credential_infos
            )
        )
        for user in answer.results
    }
    return batch_of(users if wanted is None else wanted, users, f"{deadline.name}: the reply has no user {{}}")


async def alter_scram_users(
    cluster: Cluster, changes: Mapping[str, ScramPassword | ScramRemoval], timeout_ms: int | None
) -> Batch[str, None]:
    """Admin.alter_scram_users."""
    deadline = cluster.deadline("alterUserScramCredentials", timeout_ms)
    request = _alteration(changes)
    if not changes:
        return Batch()
    answer = await ask_controller(
        cluster,
        m.AlterUserScramCredentialsResponse,
        request,
        deadline,
        lambda answer: any(user.error_code == NOT_CONTROLLER for user in answer.results),
    )
    results: dict[str, Failure | None] = {
        user.user: failure_of(user.error_code, user.error_message) for user in answer.results
    }
    return batch_of(changes, results, f"{deadline.name}: the reply has no user {{}}")


def _alteration(changes: Mapping[str, ScramPassword | ScramRemoval]) -> m.AlterUserScramCredentialsRequest:
    deletions, upsertions = [], []
    for user, change in changes.items():
        code = _code(change.mechanism)
        if isinstance(change, ScramRemoval):
            deletions.append(m.ScramCredentialDeletion(user, code))
            continue
        salt = new_salt() if change.salt is None else change.salt
        if change.iterations < 1:
            raise IllegalArgument(f"{user}: a password is hashed at least once, not {change.iterations} times")
        salted = salted_password(change.mechanism, change.password, salt, change.iterations)
        upsertions.append(m.ScramCredentialUpsertion(user, code, change.iterations, salt, salted))
    return m.AlterUserScramCredentialsRequest(deletions, upsertions)


def _code(mechanism: str) -> int:
    for code, each in _MECHANISMS.items():
        if code and each == mechanism:
            return code
    known = ", ".join(list(_MECHANISMS.values())[1:])
    raise IllegalArgument(f"there is no mechanism {str(mechanism)!r} for passwords; there are {known}")
