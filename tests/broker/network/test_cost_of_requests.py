"""A request costs in proportion to its bytes, whichever of its arrays has many short elements."""

import gc
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest
from tests.unit.broker.peer import Peer
from tools.protocol.generate import SCHEMAS as SCHEMA_FILE
from tools.protocol.schema import Field, Message, Struct, load

from groupkeeper.broker.api_table import TABLE
from groupkeeper.broker.broker import Broker
from groupkeeper.broker.network.closing import CloseConnection
from groupkeeper.protocol.framing import api_name, encode_request, request_class
from groupkeeper.protocol.primitives import UnsupportedField

pytestmark = pytest.mark.skipif(
    sys.implementation.name == "pypy", reason="PyPy compiles the plain loop that costs are compared with"
)
SCHEMAS = {one.name: one for one in load(SCHEMA_FILE.read_text())}
BYTES = 100_000
SHORT = 9
"""Bytes of an element on average; long requests have no more elements than of these (`room_of`)."""
MOST = 10
"""CPU time for each MB of a request, as a multiple of that of a million steps of a plain loop. The dearest kinds, which
describe 111,000 groups that there are not, take 5 to 6 without a load.
"""


def arrays(schema: Message, struct: Struct, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in struct.fields:
        if field.is_array:
            yield (*before, field.name)
            if field.struct_name:
                yield from arrays(schema, schema.structs[field.struct_name], (*before, field.name))


KINDS = [
    (key, path)
    for key, api in TABLE.items()
    if api.module != "not_offered"
    for schema in [SCHEMAS[f"{api_name(key)}Request"]]
    for path in arrays(schema, schema.root)
]


def step_s() -> float:
    """CPU time of a million steps of a plain loop, as fast as the machine is now."""
    took = []
    for _ in range(3):
        began = time.process_time()
        made = {}
        for number in range(1_000_000):
            made[number & 1023] = (number, number + 1)
        took.append(time.process_time() - began)
    return min(took)


@pytest.fixture(scope="module")
def at_first_s() -> float:
    return step_s()


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    few = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}
    async with Broker(properties={"auto.create.topics.enable": "false", **few}) as broker:
        broker.groups.ensure_topic()
        broker.transactions.ensure_topic()
        yield Peer(broker)


@pytest.mark.parametrize("repeated", [1, 2], ids=["distinct", "twice"])
@pytest.mark.parametrize(
    ("key", "path"), KINDS, ids=lambda one: api_name(one) if isinstance(one, int) else ".".join(one)
)
async def test_many_short_elements_cost_as_their_bytes(
    peer: Peer, at_first_s: float, key: int, path: tuple[str, ...], repeated: int
) -> None:
    api = TABLE[key]
    api.load()
    schema = SCHEMAS[api.request.__name__]
    frames = []
    for version in (api.lowest, api.highest):
        with suppress(UnsupportedField):
            size = len(encode_request(7, "c", filled(schema, schema.root, path, 100, 1), version)) // 100
            message = filled(schema, schema.root, path, BYTES // max(size, SHORT), repeated)
            frames.append(encode_request(7, "c", message, version)[4:])
    for frame in frames:
        costs, of_step_s = [], at_first_s
        for _ in range(6):
            gc.disable()
            began = time.process_time()
            try:
                with suppress(CloseConnection):
                    await peer.exchange(frame)
            finally:
                gc.enable()
            costs.append((time.process_time() - began) / BYTES * 1e6 / of_step_s)
            if costs[-1] <= MOST:
                break
            of_step_s = step_s()
        assert min(costs) <= MOST


def filled(schema: Message, struct: Struct, path: tuple[str, ...], count: int, repeated: int) -> Any:
    """A struct with so many elements at the path, each so often."""
    module = import_module(request_class(schema.key or 0).__module__)
    value = getattr(module, struct.name)()
    (field,) = [one for one in struct.fields if one.name == path[0]]
    inner = schema.structs.get(field.struct_name or "")
    if len(path) > 1:
        assert inner is not None
        setattr(value, field.name, [filled(schema, inner, path[1:], count, repeated)])
        return value
    numbers = [number // repeated for number in range(count)]
    if inner is None:
        setattr(value, field.name, [simple(field, number) for number in numbers])
    else:
        own = dict(own_fields(getattr(module, inner.name)(), inner))
        setattr(value, field.name, [element(getattr(module, inner.name)(), own, number) for number in numbers])
    return value


def simple(field: Field, number: int) -> str | bytes | int:
    if field.element == "string":
        return name_of(number)
    if field.element == "uuid":
        return number.to_bytes(16)
    return number % 127 if field.element == "int8" else number


def own_fields(default: Any, struct: Struct) -> Iterator[tuple[str, Callable[[int], object]]]:
    """What each element has of its own: the first name, and the number of a partition."""
    names = [field.name for field in struct.fields]
    yield from [(name, name_of) for name in names if isinstance(getattr(default, name), str)][:1]
    yield from [(name, int) for name in names if isinstance(getattr(default, name), int) and "partition" in name]
    yield from [(name, lambda _: 2) for name in names if name == "resource_type"]


def element(value: Any, own: Mapping[str, Callable[[int], object]], number: int) -> Any:
    for name, made in own.items():
        setattr(value, name, made(number))
    return value


def name_of(number: int) -> str:
    return f"n{number:06x}"
