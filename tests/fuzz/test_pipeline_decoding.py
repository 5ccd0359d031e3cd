"""Broken records of the offsets topic, many at a time: each is a row, and the row is what its bytes alone give."""

import base64
import os
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from tools import fuzz

from groupkeeper.pipeline.decode.arrow import Origin, decode, places_of
from groupkeeper.pipeline.decode.group_record import group_id_of, group_record_json, rejected_json
from groupkeeper.pipeline.decode.records import Records
from groupkeeper.pipeline.tables import DECODED
from groupkeeper.protocol import MalformedMessage
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.codec import encode
from groupkeeper.protocol.offsets_topic import Entry, UnknownRecord, decode_record
from groupkeeper.protocol.primitives import ZERO_UUID

Pair = tuple[bytes | None, bytes | None]
INPUTS = int(os.environ.get("PIPELINE_FUZZ", "8000"))
NAMES = ("", "g", "группа", "name-" * 60, "orders", "\U0001f600")


def seeds() -> list[Pair]:
    """A valid record of each type and version; offset commits, which are decoded side by side, more often."""
    found: list[Pair] = []
    for target in fuzz.targets()["offsets topic"]:
        size = int.from_bytes(target.seed[:2], "big")
        key, value = target.seed[2 : 2 + size], target.seed[2 + size :]
        if key[:2] in (b"\x00\x00", b"\x00\x01"):
            key = key[:2] + encode(m.OffsetCommitKey("group", "тема", 3), 0)
            found += 10 * [(key, value)]
        found += [(key, value), (key, None)]
    found = [pair for pair in found if expected(pair) is not None]
    assert {int.from_bytes(key[:2], "big") for key, _ in found if key} == set(range(24)) - {9, 18}
    return found


def broken(rng: random.Random, valid: Sequence[Pair]) -> Pair:
    key, value = rng.choice(valid)
    other_key, other_value = rng.choice(valid)
    if rng.random() < 0.3 and key is not None:
        key = key[:2] + fuzz.mutated(key[2:], other_key or b"", rng)
    if rng.random() < 0.6 and value is not None:
        value = fuzz.mutated(value, other_value or b"", rng)
    if rng.random() < 0.05:
        value = other_value
    if rng.random() < 0.01:
        key = rng.choice((None, b"", b"\x00", key and key[:2], rng.randbytes(3)))
    return key, value


def random_commits(rng: random.Random, count: int) -> Iterator[Pair]:
    """Keys of types 0 and 1, values of every version with all that can be odd about them."""
    for _ in range(count):
        record_type = rng.choice((0, 1, 1, 1))
        version = 0 if record_type == 0 else rng.randrange(5)
        names = rng.choice(NAMES), rng.choice(NAMES)
        key = record_type.to_bytes(2, "big") + encode(m.OffsetCommitKey(*names, rng.randrange(-1, 2**31)), 0)
        if rng.random() < 0.1:
            yield key, None
            continue
        metadata = "m" * rng.choice((0, 0, 1, 125, 126, 127, 128, 5000))
        value = m.OffsetCommitValue(
            rng.randrange(-1, 2**63), metadata=metadata, commit_timestamp=rng.randrange(-1, 2**62)
        )
        if version >= 3:
            value.leader_epoch = rng.randrange(-1, 2**31)
        if version == 1:
            value.expire_timestamp = rng.randrange(-1, 2**60)
        if version == 4 and rng.random() < 0.5:
            value.topic_id = rng.randbytes(16)
        encoded = version.to_bytes(2, "big") + encode(value, version)
        if version == 4 and rng.random() < 0.2:
            encoded = with_unknown_tags(encoded, value.topic_id != ZERO_UUID)
        if rng.random() < 0.1:
            encoded += b"behind"
        if rng.random() < 0.1:
            encoded = encoded[: rng.randrange(len(encoded))]
        if rng.random() < 0.1:
            key = key[: rng.randrange(len(key))]
        if rng.random() < 0.05:
            encoded = rng.randrange(2**16).to_bytes(2, "big") + encoded[2:]
        if rng.random() < 0.05:
            at = rng.randrange(max(1, len(key)))
            key = key[:at] + b"\xff" + key[at + 1 :]
        yield key, encoded


def with_unknown_tags(value: bytes, has_topic_id: bool) -> bytes:
    """The value with a tag behind those it has that no schema knows."""
    tags_at = len(value) - (19 if has_topic_id else 1)
    return value[:tags_at] + bytes([value[tags_at] + 1]) + value[tags_at + 1 :] + b"\x05\x03abc"


def records_of(pairs: Sequence[Pair]) -> Records:
    """Keys and values one after the other, with nothing between or around them."""
    sizes = np.array([[-1 if each is None else len(each) for each in pair] for pair in pairs], np.int64).reshape(-1, 2)
    ends = np.cumsum(np.maximum(sizes, 0)).reshape(sizes.shape)
    starts = ends - np.maximum(sizes, 0)
    offsets = np.arange(len(pairs))
    zeros = np.zeros(len(pairs), np.int64)
    return Records(
        data=b"".join(each or b"" for pair in pairs for each in pair), set_index=zeros, offset=offsets,
        timestamp=offsets * 1000, has_log_append_time=zeros != 0, producer_id=zeros - 1, is_control=zeros != 0,
        key_at=starts[:, 0], key_size=sizes[:, 0], value_at=starts[:, 1], value_size=sizes[:, 1], headers_at=zeros,
    )  # fmt: skip


def expected(pair: Pair) -> dict[str, Any] | None:
    """By the schemas; None: they refuse it, or do not know it."""
    key, value = pair
    try:
        record = decode_record(key or b"", value)
    except MalformedMessage:
        return None
    if isinstance(record, UnknownRecord):
        return None
    content = record.value if isinstance(record, Entry) else None
    version = None if value is None else int.from_bytes(value[:2], "big", signed=True)
    row = {"is_tombstone": value is None, "group_id": group_id_of(record.key), "value_version": version}
    if not isinstance(record.key, m.OffsetCommitKey):
        return row | {"group_record": group_record_json(record.key, content, version)}
    row |= {"topic": record.key.topic, "partition": record.key.partition}
    if isinstance(content, m.OffsetCommitValue):
        topic_id = base64.urlsafe_b64encode(content.topic_id).rstrip(b"=").decode()
        row |= {
            "committed_offset": content.offset, "metadata": content.metadata,
            "commit_timestamp_ms": content.commit_timestamp,
            "leader_epoch": content.leader_epoch if content.leader_epoch >= 0 else None,
            "expire_timestamp_ms": content.expire_timestamp if content.expire_timestamp != -1 else None,
            "topic_id": topic_id if content.topic_id != ZERO_UUID else None,
        }  # fmt: skip
    return row


def check(pairs: Sequence[Pair]) -> int:
    """How many of them were refused."""
    rows = []
    for batch in decode(records_of(pairs), places_of([Origin("c", 7)])):
        assert batch.schema.equals(DECODED.arrow)
        batch.validate(full=True)
        rows += batch.to_pylist()
    rows.sort(key=lambda row: row["log_offset"])
    found = [(row["log_offset"], row["log_timestamp_ms"], row["cluster"], row["log_partition"]) for row in rows]
    assert found == [(offset, offset * 1000, "c", 7) for offset in range(len(pairs))]
    refused = 0
    for pair, row in zip(pairs, rows, strict=True):
        wanted = expected(pair)
        if wanted is None:
            refused += 1
            assert row["problem"] is not None, pair
            assert (row["raw_key"], row["raw_value"]) == pair
            assert row["group_record"] == rejected_json(*pair)
            assert row["committed_offset"] is row["topic"] is None
        else:
            assert row["problem"] is row["raw_key"] is row["raw_value"] is None, pair
            assert {name: row[name] for name in wanted} == wanted, pair
            assert row["record_type"] == int.from_bytes((pair[0] or b"")[:2], "big")
    return refused


def test_broken_records_are_rows() -> None:
    rng = random.Random(INPUTS)
    valid = seeds()
    assert check(valid) == 0
    left, refused = INPUTS, 0
    while left > 0:
        size = min(left, rng.choice((1, 2, 3, 50, 1000)))
        refused += check([broken(rng, valid) for _ in range(size)])
        left -= size
    assert 0.1 * INPUTS < refused < 0.7 * INPUTS


@pytest.mark.parametrize("seed", range(4))
def test_commits_with_all_that_can_be_odd_about_them(seed: int) -> None:
    assert 30 < check(list(random_commits(random.Random(seed), 1500))) < 600


@pytest.mark.parametrize("key", [None, b"", b"\x00", b"\x00\x01", b"\x00\x00", b"\x00\x01\x00", b"\x00\x01\x00\x01g"])
@pytest.mark.parametrize("value", [None, b"", b"\x00", b"\x00\x04", b"\x00\x00\x00\x00\x00"])
def test_a_record_that_is_hardly_there(key: bytes | None, value: bytes | None) -> None:
    """Alone in its buffer: there is nothing behind it that could be read by accident."""
    assert check([(key, value)]) == 1


def test_every_prefix_of_a_record() -> None:
    for key, value in dict.fromkeys(seeds()):
        keys, values = (
            [each[:end] for end in range(0, len(each), 1 if len(each) < 100 else 11)]
            for each in (key or b"", value or b"")
        )
        check([(each, value) for each in keys])
        check([(each, None) for each in keys])
        check([(key, each) for each in values])
