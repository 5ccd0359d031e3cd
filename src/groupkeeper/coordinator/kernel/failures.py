"""One group's failure in an answer that describes several."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import describe_groups_response

D = TypeVar("D")
"""One group in an answer."""


def describe_failure(group_id: str, error: KafkaError) -> describe_groups_response.DescribedGroup:
    """One group's failure in DescribeGroups."""
    return describe_groups_response.DescribedGroup(error.code, None, group_id)


def failure_of(described: Callable[[int, str | None, str], D], group_id: str, error: KafkaError) -> D:
    """One group's failure where consumer, share or streams groups are described; `described` is the answer's class."""
    return described(error.code, own_message(error), group_id)


def own_message(error: KafkaError) -> str | None:
    """The message of an answer: None where it would only repeat the code's text, as in Apache Kafka."""
    return None if error.message == error.text else error.message
