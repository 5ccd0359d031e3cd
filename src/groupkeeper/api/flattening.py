"""Results as rows: the keys that lead to a value, and the value's columns. Pure, without libraries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard, get_type_hints

from groupkeeper.api.admin import GroupLag, GroupLags
from groupkeeper.client.admin.resources.access_types import AclFilter, ScramCredential
from groupkeeper.client.admin.resources.types import (
    ConfigResource,
    FencedProducer,
    LogDir,
    TransactionDescription,
    TransactionListing,
    TransactionListings,
)
from groupkeeper.client.admin.types import (
    Batch,
    CommittedOffsets,
    Failure,
    FirstRecord,
    GroupListing,
    GroupListings,
    Node,
    OffsetAndMetadata,
    SharePartitionOffset,
)
from groupkeeper.operations.lag import LagStatus, PartitionLag


class LagRow(NamedTuple):
    """A partition of a group in a table: the fields of PartitionLag, as columns. None: not known, unless a field says
    otherwise.
    """

    group_id: str
    topic: str
    partition: int
    committed_offset: int | None
    """None: nothing is committed, or it is unknown."""
    committed_leader_epoch: int | None
    committed_metadata: str | None
    """None where `committed_offset` is."""
    log_start_offset: int | None
    log_end_offset: int | None
    last_stable_offset: int | None
    """None: unknown, or not requested."""
    lag: int | None
    """None: unknown, or nothing is committed."""
    lost: int | None
    """None: as for `lag`."""
    done_ahead: int | None
    """None: unknown, or not of a share group."""
    status: LagStatus
    member_id: str | None
    """None: not assigned, or to several members, as the next two."""
    client_id: str | None
    host: str | None


class CommittedRow(NamedTuple):
    """A committed offset in a table. −1: nothing is committed, or the epoch isn't known."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


class ReplicaRow(NamedTuple):
    """A replica in a table, or a directory without one. None: the directory has no replica, unless a field says
    otherwise.
    """

    topic: str | None
    partition: int | None
    size: int | None
    """In bytes."""
    lag: int | None
    """In offsets."""
    is_future: bool | None
    total_bytes: int | None
    """Of the volume; None: unknown, as with brokers before 3.3."""
    usable_bytes: int | None
    """Of the volume; None: unknown, as with brokers before 3.3."""


class FlatRow(NamedTuple):
    """One row: the keys that lead to a value, outermost first, and the value, or the reason why it is missing."""

    keys: tuple[Any, ...]
    value: object = None
    failure: Failure | None = None


_ROW_CLASSES: dict[type, type] = {
    GroupLag: LagRow,
    PartitionLag: LagRow,
    CommittedOffsets: CommittedRow,
    LogDir: ReplicaRow,
}
"""The row classes of values that don't fit in a row."""

_KEY_NAMES: dict[type | None, tuple[str, ...]] = {
    CommittedRow: ("group_id",),
    FencedProducer: ("transactional_id",),
    LagRow: ("group_id",),
    Node: ("group_id",),
    OffsetAndMetadata: ("group_id",),
    ReplicaRow: ("broker_id", "path"),
    ScramCredential: ("user",),
    SharePartitionOffset: ("group_id",),
    TransactionDescription: ("transactional_id",),
}
"""Column names of keys that have no fields, by the class of their values."""

_FIELD_NAMES: dict[type, dict[str, str]] = {
    ConfigResource: {"type": "resource_type", "name": "resource_name"},
    AclFilter: {field: f"filter_{field}" for field in AclFilter._fields},
    FirstRecord: {"offset": "record_offset"},
}
"""Column names for fields that two values of a row share, so that columns differ."""


def row_class(result: object) -> type | None:
    """The class of the values, if the result tells it, even without values; else None."""
    match result:
        case GroupLags():
            return LagRow
        case GroupListings():
            return GroupListing
        case TransactionListings():
            return TransactionListing
    return None


def rows_of(result: object) -> list[FlatRow]:
    """A row for each value in a result, and for each failure."""
    return list(_rows((), result))


def _rows(keys: tuple[Any, ...], value: object) -> Iterator[FlatRow]:
    match value:
        case Batch():
            yield from _inner(keys, value.done)
            yield from (FlatRow((*keys, key), failure=failure) for key, failure in value.failed.items())
        case GroupListings(groups=found, failed=failed) | TransactionListings(transactions=found, failed=failed):
            yield from (FlatRow(keys, each) for each in found.values())
            yield from (FlatRow(keys, failure=failure) for failure in failed.values())
        case GroupLag():
            yield from (_lag_row(each, value.failure) for each in value.partitions)
        case PartitionLag():
            yield _lag_row(value, None)
        case CommittedOffsets():
            columns = zip(value.partitions, value.offsets, value.leader_epochs, value.metadata, strict=True)
            for tp, offset, epoch, metadata in columns:
                yield FlatRow(keys, CommittedRow(*tp, offset, epoch, metadata))
            yield from (FlatRow((*keys, tp), failure=failure) for tp, failure in value.failed.items())
        case LogDir():
            yield from _replicas(keys, value)
        case Mapping():
            yield from _inner(keys, value)
        case list() | tuple() if not is_row(value):
            for each in value:
                yield from _rows(keys, each)
        case _:
            yield FlatRow(keys, value)


def _inner(keys: tuple[Any, ...], values: Mapping[Any, object]) -> Iterator[FlatRow]:
    for key, value in values.items():
        yield from _rows((*keys, key), value)


def _lag_row(one: PartitionLag, failure: Failure | None) -> FlatRow:
    committed, member = one.committed, one.member
    row = LagRow(
        one.group_id,
        one.topic,
        one.partition,
        None if committed is None else committed.offset,
        None if committed is None else committed.leader_epoch,
        None if committed is None else committed.metadata,
        one.log_start_offset,
        one.log_end_offset,
        one.last_stable_offset,
        one.lag,
        one.lost,
        one.done_ahead,
        one.status,
        None if member is None else member.member_id,
        None if member is None else member.client_id,
        None if member is None else member.host,
    )
    return FlatRow((one.group_id,), row, one.failure or failure)


def _replicas(keys: tuple[Any, ...], log_dir: LogDir) -> Iterator[FlatRow]:
    disk = log_dir.total_bytes, log_dir.usable_bytes
    for tp, replica in log_dir.replicas.items():
        yield FlatRow(keys, ReplicaRow(*tp, replica.size, replica.lag, replica.is_future, *disk), log_dir.error)
    if not log_dir.replicas:
        yield FlatRow(keys, ReplicaRow(None, None, None, None, None, *disk), log_dir.error)


def is_row(value: object) -> TypeGuard[tuple[Any, ...]]:
    """Whether a value has named fields."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


class Layout:
    """The columns of a result's rows. `columns`: their types by name."""

    def __init__(self, rows: Sequence[FlatRow], row: type | None = None) -> None:
        """`row` is the class of the values, for a result that may have none. Raises TypeError for several classes."""
        found = {type(each.value): None for each in rows if each.value is not None}
        if len(found) > 1:
            raise TypeError(f"a table has values of one kind, not of {', '.join(kind.__name__ for kind in found)}")
        kind = next(iter(found), row)
        kind = None if kind is None else _ROW_CLASSES.get(kind, kind)
        keys = max((each.keys for each in rows), key=len, default=())
        names = zip(keys, _names(keys, kind), strict=True)
        self._keys = [fields_of(type(key)) if is_row(key) else {name: type(key)} for key, name in names]
        self._value = {} if kind is None else fields_of(kind) if hasattr(kind, "_fields") else {"value": kind}
        self.columns: dict[str, Any] = {"error": str}
        for columns in (self._value, *reversed(self._keys)):
            self.columns = columns | self.columns

    def values(self, row: FlatRow) -> dict[str, object]:
        """A row's values by column; None: the row lacks it."""
        values: dict[str, object] = dict.fromkeys(self.columns)
        if row.value is not None:
            values.update(zip(self._value, row.value if is_row(row.value) else (row.value,), strict=True))
        for columns, key in zip(self._keys, row.keys, strict=False):
            values.update(zip(columns, key if is_row(key) else (key,), strict=True))
        if row.failure is not None:
            values["error"] = error_text(row.failure)
        return values


def _names(keys: Sequence[object], kind: type | None) -> Iterator[str]:
    """A name for each key that has no fields."""
    given: tuple[str, ...] = _KEY_NAMES.get(kind, ())
    if not given:
        given = getattr(kind, "_fields", ())[:1]  # a description has its group's id, a config its name
    plain = sum(not is_row(key) for key in keys)
    names = iter([*given, *(["name"] if plain == 1 and kind in (str, float) else ["key", "name"]), *_MORE_NAMES])
    return ("" if is_row(key) else next(names) for key in keys)


_MORE_NAMES = tuple(f"key{number}" for number in range(3, 9))


def fields_of(kind: type) -> dict[str, Any]:
    """The types of a class's fields, by the names of their columns."""
    names, hints = _FIELD_NAMES.get(kind, {}), get_type_hints(kind)
    return {names.get(field, field): hints[field] for field in kind._fields}  # type: ignore[attr-defined]


def error_text(failure: Exception) -> str:
    """The reason why a key has no value: the kind of failure, and its text."""
    return f"{type(failure).__name__}: {failure}"
