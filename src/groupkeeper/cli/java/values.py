"""Java's behaviour that a replacement of the official tools has to copy: numbers, widths, order, class names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from groupkeeper.cli.java.assignments import Unreadable
from groupkeeper.cli.java.releases import release
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.client.errors import (
    AuthenticationFailed,
    BrokersNotFound,
    CallTimedOut,
    IllegalArgument,
    SaslMissing,
    TlsFailed,
    UnsupportedVersion,
)
from groupkeeper.protocol import errors
from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.java_hash import in_map_order, java_hash

_BLANKS = "".join(map(chr, range(33)))
ERRORS = "org.apache.kafka.common.errors."

K = TypeVar("K")


def to_int(number: int) -> int:
    """The low 32 bits as a signed number: Java's narrowing of a long."""
    return (number + 2**31) % 2**32 - 2**31


def to_long(number: int) -> int:
    """The low 64 bits as a signed number: the result of Java's long arithmetic."""
    return (number + 2**63) % 2**64 - 2**63


def split(text: str, separator: str) -> list[str]:
    """String.split: empty parts at the end are dropped, except that an empty text is one empty part."""
    if not text:
        return [""]
    parts = text.split(separator)
    while parts and not parts[-1]:
        parts.pop()
    return parts


def trim(text: str) -> str:
    """String.trim: everything up to a blank goes from both ends."""
    return text.strip(_BLANKS)


def width(text: str) -> int:
    """Length in UTF-16 units, by which Java pads columns."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def sort_key(text: str) -> str | bytes:
    """Sorts like String.compareTo. Keys of one sort are all of this function."""
    return text.encode("utf-16-be", "surrogatepass")


def hash_order(keys: Iterable[K], hash_of: Callable[[K], int], *, copied: bool = False, sized: bool = False) -> list[K]:
    """The distinct keys in the order in which a java.util.HashMap gives them.

    Which group a tool treats first decides which error it shows, and what was already done when it stops.
    `copied`: the map was made of another one, so that its table is just large enough. `sized`: it was made for this
    number of keys, and grew when there were too many for its table.
    """
    distinct = list(dict.fromkeys(keys))
    capacity = int(len(distinct) / 0.75 + 1) if copied else len(distinct) / 0.75
    return in_map_order(distinct, hash_of, capacity, 1 if copied or sized else 16)


def text_order(texts: Iterable[str], *, copied: bool = False, sized: bool = False) -> list[str]:
    """Texts in the order of a java.util.HashMap, see `hash_order`."""
    return hash_order(texts, java_hash, copied=copied, sized=sized)


def partition_order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Partitions in the order of a java.util.HashMap."""
    return hash_order(partitions, lambda tp: 31 * (31 + tp.partition) + java_hash(tp.topic))


def group_order(group_ids: Iterable[str]) -> list[str]:
    """The order in which the admin client's description of groups gives them, through two maps. Which one of a bucket
    comes first is drawn by Java when it starts.
    """
    return text_order(text_order(group_ids), copied=True)


def asked_topics(topics: Iterable[str]) -> list[str]:
    """The topics in the order of the admin client's answers: the first failed topic is the one that Java reports."""
    return text_order(text_order(topics, sized=True), copied=True)


def topic_order(topics: Iterable[str]) -> list[str]:
    """The order in which the admin client's description of a set of topics gives them."""
    return text_order(asked_topics(text_order(topics)), sized=True)


def class_name(error: Exception) -> str:
    """The Java class of an error, as it appears in messages."""
    if isinstance(error, KafkaError):
        return ERRORS + error.java_class
    if isinstance(error, Unreadable):
        return error.java_class
    if isinstance(error, AuthenticationFailed) and not isinstance(error, SaslMissing):
        if isinstance(error.refusal, KafkaError):
            return class_name(error.refusal)
        return ERRORS + (
            "SslAuthenticationException" if isinstance(error, TlsFailed) else "SaslAuthenticationException"
        )
    if isinstance(error, UnsupportedVersion):
        return ERRORS + "UnsupportedVersionException"
    if isinstance(error, IllegalArgument):
        return "java.lang.IllegalArgumentException"
    if isinstance(error, BrokersNotFound):
        return "org.apache.kafka.common.KafkaException"
    return ERRORS + "TimeoutException"


def message(error: Exception) -> str:
    """Throwable.getMessage. Where Apache's client adds nothing to its texts, neither does this."""
    if isinstance(error, AuthenticationFailed) and not isinstance(error, TlsFailed) and error.refusal is not None:
        return str(error.refusal)
    text = "SSL handshake failed" if isinstance(error, TlsFailed) else str(error) or type(error).__name__
    if isinstance(error, BrokersNotFound):
        return text.partition(":")[0]
    if isinstance(error, errors.GroupDeletionFailed):
        return errors.GroupDeletionFailed().text  # Apache's client drops the broker's reason
    if isinstance(error, errors.GroupAuthorizationFailed) and text.startswith("FindCoordinator"):
        before, group_id, after = text.split("`", 1)[0], *text.split("`", 1)[1].rsplit("`", 1)
        return f"{before}`CoordinatorKey(idValue='{group_id}', type=GROUP)`{after}"
    if isinstance(error, UnsupportedVersion) and release().names_filters:
        return _FILTER_REFUSED.sub(_named_filter, text)
    return text


_FILTER_REFUSED = re.compile(
    r"The broker only supports ListGroups v(\d+), but we need v(\d+) or newer to request groups by \w+\."
    r"(?: Requested group types: \[(.*)\]\.)?"
)
"""As Kafka says it up to 4.3."""


def _named_filter(refused: re.Match[str]) -> str:
    version, least, types = refused.groups("StatesFilter")
    wanted = types.replace(", ", ",")
    return (
        f"The cluster does not support [{wanted}] in LIST_GROUPS API version {version}. "
        f"Upgrade the cluster to LIST_GROUPS API version >= {least} to enable [{wanted}]."
    )


def lookup_message(error: Exception, call: str) -> str:
    """Throwable.getMessage of a call that begins with the lookup of a coordinator, which may take all its time."""
    if isinstance(error, CallTimedOut):
        return f"Timed out waiting for a node assignment. Call: {call}(api=FIND_COORDINATOR)"
    return message(error)


def described(error: Exception) -> str:
    """Throwable.toString, which is also the message of an exception that only wraps this one."""
    return f"{class_name(error)}: {message(error)}"


def wrapped(error: Exception) -> str:
    """The message of a RuntimeException around the ExecutionException around this one."""
    return "java.util.concurrent.ExecutionException: " + described(error)


def kafka_name(error: Exception) -> str:
    """Errors.forException(…).name()."""
    if isinstance(error, KafkaError):
        return error.name
    if isinstance(error, AuthenticationFailed) and not isinstance(error, SaslMissing):
        refusal = None if isinstance(error, TlsFailed) else error.refusal or errors.SaslAuthenticationFailed()
        return refusal.name if isinstance(refusal, KafkaError) else "UNKNOWN_SERVER_ERROR"
    if isinstance(error, UnsupportedVersion):
        return "UNSUPPORTED_VERSION"
    return "UNKNOWN_SERVER_ERROR" if isinstance(error, IllegalArgument) else "REQUEST_TIMED_OUT"
