"""The record that a group reads next, for people: its key, headers, sizes and time, and its value if that is wanted."""

from __future__ import annotations

from typing import NamedTuple

from groupkeeper.client.admin import Admin
from groupkeeper.client.admin.types import TopicPartition
from groupkeeper.protocol.record import Record
from groupkeeper.protocol.record_batch import CorruptRecord, iter_headers, read_records

_MOST_BYTES = 200


class NextRecord(NamedTuple):
    """A record for people: long keys and values are cut, and those that are no text are in hexadecimal."""

    offset: int
    time_ms: int | None
    """None: it has none."""
    key: str | None
    """None: null."""
    key_size: int | None
    """In bytes; None: null."""
    value_size: int | None
    """In bytes; None: null, in a compacted topic a tombstone."""
    headers: tuple[tuple[str, str], ...]
    value: str | None
    """None: not shown, or null."""


async def next_record(
    admin: Admin, tp: TopicPartition, offset: int, end: int, *, shows_value: bool = False
) -> NextRecord | None:
    """The first record at or after an offset; None: there is none before `end`. Raises why it cannot be read."""
    found: list[Record] = []

    def take(_: TopicPartition, data: bytes) -> int | None:
        reached = None
        for pos, header in iter_headers(data):
            reached = header.next_offset
            if not header.is_control and header.last_offset >= offset:
                try:
                    found.extend(one for one in read_records(data, pos, header=header) if one.offset >= offset)
                except CorruptRecord:
                    continue
                if found:
                    return end
        return reached

    (await admin.read_logs({tp: (offset, end)}, take)).result(tp)
    if not found:
        return None
    one = found[0]
    headers = tuple((name, shown(value) or "") for name, value in one.headers)
    time_ms = None if one.timestamp < 0 else one.timestamp
    value = shown(one.value) if shows_value else None
    return NextRecord(one.offset, time_ms, shown(one.key), _size(one.key), _size(one.value), headers, value)


def _size(part: bytes | None) -> int | None:
    return None if part is None else len(part)


def shown(value: bytes | None) -> str | None:
    """Bytes as text where they are text, else in hexadecimal; the first of many."""
    if value is None:
        return None
    some = value[:_MOST_BYTES]
    text = some.decode(errors="replace")
    is_text = all(char.isprintable() for char in text.rstrip("\ufffd")) and "\ufffd" not in text[:-3]
    return (text if is_text else f"0x{some.hex()}") + ("…" if len(value) > _MOST_BYTES else "")
