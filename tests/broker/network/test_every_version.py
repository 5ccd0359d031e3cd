"""Every API in every version that is offered: a request with something in each of its fields gets an answer of that
version.
"""

import sys
import typing
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.broker.conftest import Wire
from tests.broker.network.test_abuse import annotations

from groupkeeper.broker.api_table import TABLE
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.errors import UnknownServerError
from groupkeeper.protocol.framing import encode_request, request_class
from groupkeeper.protocol.primitives import Message, RootMessage, UnsupportedField

NAME = "t"
"""Of the topic, the group, the member, the transactional id: whatever an API wants the name of."""
VALUES = {
    "acks": -1,
    "resource_type": 2,
    "resource_type_filter": 2,
    "resource_pattern_type": 3,
    "pattern_type_filter": 3,
    "operation": 3,
    "permission_type": 3,
    "replication_factor": 1,
    "num_partitions": 1,
    "count": 2,
    "protocol_type": "consumer",
    "max_bytes": 1000,
    "partition_max_bytes": 1000,
} | dict.fromkeys(
    ("timeout_ms", "session_timeout_ms", "rebalance_timeout_ms", "transaction_timeout_ms"), 10_000
)  # fmt: skip


def filled(kind: Any, topic_id: bytes) -> Any:
    """One of each: in a list one element, in a text the name."""
    typed = SimpleNamespace(__annotations__=annotations(kind))
    hints = typing.get_type_hints(typed, vars(sys.modules[kind.__module__]), {"Sequence": Sequence})
    fields: dict[str, object] = {"topic_id": topic_id} | VALUES
    for name, hint in hints.items():
        hint = next((one for one in typing.get_args(hint) if type(None) in typing.get_args(hint)), hint)
        if typing.get_origin(hint) is Sequence:
            (one,) = typing.get_args(hint)
            is_struct = isinstance(one, type) and issubclass(one, Message)
            fields[name] = [filled(one, topic_id) if is_struct else NAME if one is str else 0]
        elif isinstance(hint, type) and issubclass(hint, Message):
            fields[name] = filled(hint, topic_id)
        elif hint is str:
            fields.setdefault(name, NAME)
    request = kind(**{name: value for name, value in fields.items() if name in hints})
    if isinstance(request, m.DescribeQuorumRequest):
        request.topics[0].topic_name = "__cluster_metadata"
    return request


def without(message: Message, field: str) -> None:
    """Gives a field its default, wherever it is."""
    for name in message.__slots__:
        value = getattr(message, name)
        if name == field:
            setattr(message, name, getattr(type(message)(), name))
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Message):
                without(one, field)


def request_of(key: int, version: int, topic_id: bytes) -> RootMessage:
    """A request with what the version has of the fields."""
    request: RootMessage = filled(request_class(key), topic_id)
    while True:
        try:
            encode_request(1, None, request, version)
        except UnsupportedField as error:
            without(request, str(error).rpartition(": ")[2].split()[0])
        else:
            return request


def errors_of(value: object) -> Iterator[int]:
    if isinstance(value, Message):
        for name in value.__slots__:
            if name.endswith("error_code"):
                yield getattr(value, name)
            yield from errors_of(getattr(value, name))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from errors_of(one)


async def topic_id_of(wire: Wire) -> bytes:
    """The topic, made by asking for it."""
    answer: Any = await wire.call(m.MetadataRequest([m.MetadataRequestTopic(name=NAME)], True), 12)
    topic_id: bytes = answer.topics[0].topic_id
    return topic_id


@pytest.mark.timeout(120)
async def test_every_api_answers_in_every_version_it_offers(wire: Wire) -> None:
    failed = []
    for _ in range(2):  # the second time there are the groups, offsets and transactions that the first one made
        for api in TABLE.values():
            for version in range(api.lowest, api.highest + 1):
                request = request_of(api.key, version, await topic_id_of(wire))
                answer = await wire.call(request, version)
                if UnknownServerError.code in errors_of(answer):
                    failed.append((type(request).__name__, version))
    assert failed == []
