"""Hypothesis strategies for the values of every message in every version, derived from the schemas."""

import sys
from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from tests.unit.protocol.corpus import classes, schemas
from tools.protocol.schema import Field, Message, Struct

from groupkeeper.protocol.primitives import Message as MessageValue
from groupkeeper.protocol.primitives import RootMessage

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["x" * 126, "y" * 127, "é" * 64, "z" * 16_383, "group-1"]
)
BYTES = st.binary(max_size=10) | st.sampled_from([bytes(126), bytes(127), bytes(20_000)])
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def struct_class(message: Message, struct: Struct) -> type[MessageValue]:
    """The generated class of a struct of that message."""
    found: type[MessageValue] = getattr(sys.modules[classes()[message.name].__module__], struct.name)
    return found


def values(message: Message, version: int) -> SearchStrategy[RootMessage]:
    """Messages whose fields hold values that this version can carry."""
    return _struct(message.name, message.name, version)


@cache
def _struct(message_name: str, struct_name: str, version: int) -> SearchStrategy[Any]:
    message = schemas()[message_name]
    struct = message.structs[struct_name]
    fields = {
        f.name: field_values(message, f, version) for f in struct.fields if f.versions.low <= version <= f.versions.high
    }
    return st.builds(struct_class(message, struct), **fields)


def field_values(message: Message, item: Field, version: int) -> SearchStrategy[Any]:
    """Values of one field in a version that has it."""
    strategy: SearchStrategy[Any]
    if item.struct_name is not None:
        strategy = _struct(message.name, item.struct_name, version)
    else:
        strategy = simple_values(item.element)
    if item.is_array:
        strategy = st.lists(strategy, max_size=3)
        if item.element == "int32":
            strategy |= st.just(list(range(200)))
    if item.nullable.low <= version <= item.nullable.high:
        strategy = st.none() | strategy
    return strategy


def simple_values(kind: str) -> SearchStrategy[Any]:
    """Values of a type that is no struct."""
    if kind in BITS:
        most = 1 << (BITS[kind] - 1)
        return st.integers(-most, most - 1)
    if kind in ("uint16", "uint32"):
        return st.integers(0, (1 << int(kind[4:])) - 1)
    if kind == "float64":
        return st.floats(allow_nan=False)
    if kind == "bool":
        return st.booleans()
    if kind == "uuid":
        return st.binary(min_size=16, max_size=16)
    return TEXT if kind == "string" else BYTES
