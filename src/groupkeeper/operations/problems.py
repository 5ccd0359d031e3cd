"""What did not work, in words: for people, and by names for programs."""

from __future__ import annotations

import re
from typing import NamedTuple

from groupkeeper.client.batch import Failure
from groupkeeper.client.errors import BrokersNotFound, ClientError, NotABroker
from groupkeeper.operations.authorization import Acl, Deed, missing_acl
from groupkeeper.protocol.errors import KafkaError


class Problem(NamedTuple):
    """What did not work: the error's name in capitals, its text, and what is concerned, None where that is nothing.

    ``cluster``: its name, with several clusters.
    """

    error: str
    message: str
    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None
    acl: Acl | None = None
    cluster: str | None = None


_OF_A_CONTROLLER = "a KRaft controller answers there, which serves no clients: name the address of a broker"
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


def error_name(failure: Exception) -> str:
    """Kafka's name of an error, or our own in the same form: GROUP_IS_ACTIVE."""
    if isinstance(failure, KafkaError):
        return failure.name
    return _CAPITAL.sub("_", type(failure).__name__).upper()


def problem_of(
    failure: Failure,
    deed: Deed = Deed.DESCRIBE,
    *,
    group: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
    broker: int | None = None,
) -> Problem:
    """The problem for a failure, with the missing ACL that explains it."""
    if isinstance(failure, BrokersNotFound) and isinstance(failure.__cause__, KafkaError | ClientError):
        failure = failure.__cause__  # which says why
    acl = missing_acl(failure, deed, group_id=group, topic=topic)
    text = _OF_A_CONTROLLER if isinstance(failure, NotABroker) else str(failure)
    return Problem(error_name(failure), text, group, topic, partition, broker, acl)
