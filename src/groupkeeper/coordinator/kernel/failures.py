"""Failures of single groups in responses that describe several."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from groupkeeper.protocol.errors import KafkaError
from groupkeeper.protocol.messages import describe_groups_response

D = TypeVar("D")
"""The class of a described group in a response."""


def describe_failure(group_id: str, error: KafkaError) -> describe_groups_response.DescribedGroup:
    """One group's failure in DescribeGroups."""
    return describe_groups_response.DescribedGroup(error.code, None, group_id)


def failure_of(described: Callable[[int, str | None, str], D], group_id: str, error: KafkaError) -> D:
    """One group's failure when describing consumer, share or streams groups; `described`: class of the result."""
    return described(error.code, own_message(error), group_id)


def own_message(error: KafkaError) -> str | None:
    """The error message of a response: None if it only repeats the error code's text, as in Apache Kafka."""
    return None if error.message == error.text else error.message
