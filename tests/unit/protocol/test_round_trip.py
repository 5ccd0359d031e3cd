"""Every message in every version: what is written is read back, unknown tags are skipped, nothing is lost silently."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.protocol import corpus, strategies
from tools.protocol import generate
from tools.protocol.schema import NEVER, Field, Message, Struct, Versions

from groupkeeper.protocol.codec import (
    MalformedMessage,
    UnsupportedField,
    UnsupportedMessageVersion,
    decode,
    decode_prefix,
    encode,
)
from groupkeeper.protocol.messages.heartbeat_request import HeartbeatRequest
from groupkeeper.protocol.primitives import Message as MessageValue
from groupkeeper.protocol.primitives import RootMessage, varint

MESSAGES = corpus.schemas()
CLASSES = corpus.classes()
FUTURE_TAG = 77


# Strategies are blamed for random numbers that another thread of the process draws meanwhile, by a text of 68 kB.
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
@pytest.mark.parametrize("name", MESSAGES)
def test_round_trip(name: str) -> None:  # GW-02
    message, cls = MESSAGES[name], CLASSES[name]

    @settings(max_examples=12, suppress_health_check=list(HealthCheck), database=None)
    @given(st.sampled_from(range(cls.MIN_VERSION, cls.MAX_VERSION + 1)), st.data())
    def check(version: int, source: st.DataObject) -> None:
        value = source.draw(strategies.values(message, version))
        body = encode(value, version)
        again = decode(cls, body, version)
        assert again == value
        assert encode(again, version) == body
        assert decode_prefix(cls, b"\x00" + body + b"more", version, 1) == (value, len(body) + 1)

    check()


def instances(name: str, version: int) -> Iterator[bytes]:
    """Apache's encodings of the message in that version."""
    for line in corpus.lines("message"):
        if line[0] == name and int(line[1]) == version:
            yield bytes.fromhex(line[3])


def with_future_tags(message: Message) -> type[RootMessage]:
    """The class that a later schema would give, in which every struct has one more tagged field."""
    tag = Field("from_the_future", "string", message.flexible, tag=FUTURE_TAG, tagged=message.flexible)
    structs = {name: Struct(name, [*struct.fields, tag]) for name, struct in message.structs.items()}
    namespace: dict[str, Any] = {"__name__": message.name}
    exec(generate.module_text(dataclasses.replace(message, structs=structs)), namespace)
    found: type[RootMessage] = namespace[message.name]
    return found


def test_a_newer_field_of_structs_that_are_read_by_column() -> None:
    old = MESSAGES["OffsetFetchResponse"]
    last = old.versions.high + 1
    time = Field("commit_time_ms", "int64", Versions(last, NEVER), default="-1", ignorable=True)
    name = "OffsetFetchResponsePartitions"
    structs = {**old.structs, name: Struct(name, [*old.structs[name].fields, time])}
    newer = dataclasses.replace(old, versions=Versions(old.versions.low, last), structs=structs)
    namespace: dict[str, Any] = {"__name__": newer.name}
    exec(generate.module_text(newer), namespace)
    for version in (last - 1, last):
        partition = namespace[name](3, 7, 1, "", 0, 99 if version == last else -1)
        group = namespace["OffsetFetchResponseGroup"](
            "g", [namespace["OffsetFetchResponseTopics"](partitions=[partition])]
        )
        value = namespace[newer.name](groups=[group])
        buf = encode(value, version)
        assert list(decode(namespace[newer.name], buf, version).groups[0].topics[0].partitions) == [partition]


def tag_every_struct(value: MessageValue) -> None:
    for name in value.__slots__:
        part = getattr(value, name)
        for element in part if isinstance(part, list) else [part]:
            if isinstance(element, MessageValue):
                tag_every_struct(element)
    value.from_the_future = "é" * 100  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [name for name, message in MESSAGES.items() if message.flexible & message.versions])
def test_unknown_tags_are_skipped(name: str) -> None:  # GW-02
    message, cls = MESSAGES[name], CLASSES[name]
    future = with_future_tags(message)
    version = cls.MAX_VERSION
    for body in instances(name, version):
        value = decode(future, body, version)
        tag_every_struct(value)
        tagged = encode(value, version)
        assert len(tagged) > len(body)
        assert encode(decode(cls, tagged, version), version) == body


def paths(message: Message, struct: Struct, path: tuple[Field, ...] = ()) -> Iterator[tuple[tuple[Field, ...], Field]]:
    """Every field of the message, with the fields that lead to its struct."""
    for item in struct.fields:
        yield path, item
        if item.struct_name is not None:
            yield from paths(message, message.structs[item.struct_name], (*path, item))


def message_with(message: Message, path: tuple[Field, ...], item: Field, value: object) -> RootMessage:
    """The message of defaults in which the field at the end of `path` has `value`."""
    structs = [message.root, *(message.structs[step.struct_name] for step in path if step.struct_name)]
    built: Any = strategies.struct_class(message, structs[-1])(**{item.name: value})
    for struct, step in reversed(list(zip(structs, path, strict=False))):
        part = [built] if step.is_array else built
        built = strategies.struct_class(message, struct)(**{step.name: part})
    assert isinstance(built, RootMessage)
    return built


def other_value(message: Message, item: Field, default: object) -> object:
    """A value of the field that is not its default."""
    if item.is_array:
        element = {"string": "x", "uuid": b"u" * 16}.get(item.element, 5)
        return (
            [strategies.struct_class(message, message.structs[item.struct_name])()] if item.struct_name else [element]
        )
    if item.struct_name is not None:
        return None if default is not None else strategies.struct_class(message, message.structs[item.struct_name])()
    values = {"string": "x", "bytes": b"x", "records": b"x", "uuid": b"u" * 16, "bool": not default}
    return values.get(item.type, 5)


@pytest.mark.parametrize("name", MESSAGES)
def test_values_without_a_place_are_refused_unless_ignorable(name: str) -> None:  # GW-03
    message, cls = MESSAGES[name], CLASSES[name]
    for path, item in paths(message, message.root):
        struct = message.structs[path[-1].struct_name or ""] if path else message.root
        default = getattr(strategies.struct_class(message, struct)(), item.name)
        if item.struct_name and not item.is_array and not item.nullable:
            continue  # its fields are tried one by one
        value = message_with(message, path, item, other_value(message, item, default))
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
            if not all(Versions(version, version) & step.versions for step in path) or refuses_defaults(value, version):
                continue
            if Versions(version, version) & item.versions:
                assert encode(value, version) != encode(message_with(message, path, item, default), version)
            elif item.ignorable:
                assert encode(value, version) == encode(message_with(message, path, item, default), version)
            else:
                with pytest.raises(UnsupportedField, match=rf"{item.name}.*version {version}\b"):
                    encode(value, version)


def refuses_defaults(value: RootMessage, version: int) -> bool:
    """Whether a default null beside the field cannot be written in that version."""
    try:
        encode(value, version)
    except UnsupportedField as error:
        return "= null" in str(error)
    return False


@pytest.mark.parametrize("name", MESSAGES)
def test_null_is_refused_where_it_is_not_allowed(name: str) -> None:  # GW-03, K88-01
    message, cls = MESSAGES[name], CLASSES[name]
    for path, item in paths(message, message.root):
        if item.type not in ("string", "bytes", "records") and not item.is_array:
            continue
        try:
            value = message_with(message, path, item, None)
        except TypeError:  # a compiled message refuses it when it is made
            continue
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
            here = Versions(version, version)
            if all(here & step.versions for step in path) and here & item.versions and not here & item.nullable:
                with pytest.raises(UnsupportedField):
                    encode(value, version)


def test_all_topics_need_version_2_of_offset_fetch() -> None:  # K88-01, K88-70
    everything = CLASSES["OffsetFetchRequest"](group_id="g", topics=None)  # type: ignore[call-arg]
    assert encode(everything, 2) == b"\x00\x01g\xff\xff\xff\xff"
    assert encode(everything, 6) == b"\x02g\x00\x00"
    with pytest.raises(UnsupportedField, match=r"topics = null.*version 1\b"):
        encode(everything, 1)


@pytest.mark.parametrize("name", MESSAGES)
def test_versions_outside_the_schema_are_refused(name: str) -> None:
    cls = CLASSES[name]
    for version in (-1, cls.MIN_VERSION - 1, cls.MAX_VERSION + 1, 32_767):
        with pytest.raises(UnsupportedMessageVersion):
            decode(cls, bytes(100), version)
        with pytest.raises(UnsupportedMessageVersion):
            encode(cls(), version)


def test_numbers_out_of_range_are_refused() -> None:
    heartbeat = CLASSES["HeartbeatRequest"]("g", 1 << 31, "m")  # type: ignore[call-arg]
    with pytest.raises(UnsupportedField):
        encode(heartbeat, 4)
    with pytest.raises(UnsupportedField):
        encode(CLASSES["HeartbeatRequest"]("g" * 32_768), 0)  # type: ignore[call-arg]


def test_a_longer_string_than_kafka_takes_is_malformed() -> None:
    whole = encode(HeartbeatRequest("g" * 32_767), 4)
    assert decode(HeartbeatRequest, whole, 4).group_id == "g" * 32_767
    with pytest.raises(MalformedMessage, match="string of 32768 bytes"):
        decode(HeartbeatRequest, varint(32_769) + whole[3:-1] + b"g" + whole[-1:], 4)
