"""Reading fields at many positions of one buffer at a time."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    C = TypeVar("C", bound=DataclassInstance)

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

_MAX_VARINT_BYTES = 10


def choose(columns: C, rows: Bools | Ints) -> C:
    """A dataclass of arrays with some of their elements only; other fields stay as they are. Row numbers ascend."""
    chosen: dict[str, Any] = {}
    for field in dataclasses.fields(columns):
        column = getattr(columns, field.name)
        if isinstance(column, np.ndarray):
            if rows.all() if rows.dtype == np.bool_ else len(rows) == len(column):
                return columns
            chosen[field.name] = column[rows]
    return dataclasses.replace(columns, **chosen)


class View:
    """A buffer as arrays of big-endian integers, one for every byte position, so that indexing by positions reads
    fields. Positions must be within the buffer, or 0; IndexError otherwise.
    """

    __slots__ = ("_int16", "_int32", "_int64", "octets")

    def __init__(self, data: bytes) -> None:
        self.octets: Bytes = np.frombuffer(data, np.uint8)
        self._int16 = _unaligned(data, ">i2")
        self._int32 = _unaligned(data, ">i4")
        self._int64 = _unaligned(data, ">i8")

    def int8(self, at: Ints) -> Ints:
        return self.octets[at].astype(np.int64)

    def int16(self, at: Ints) -> Ints:
        return self._int16[at].astype(np.int64)

    def int32(self, at: Ints) -> Ints:
        return self._int32[at].astype(np.int64)

    def int64(self, at: Ints) -> Ints:
        return self._int64[at].astype(np.int64)


def read_varints(octets: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """Zigzag varints at positions, and the positions after them.

    Raises IndexError beyond the buffer, ValueError for more bytes than 64 bits need.
    """
    raw = octets[at].astype(np.int64)
    behind = at + 1
    if raw.size and raw.max() > 0x7F:
        _read_longer(octets, raw, behind)
    return (raw.view(np.uint64) >> np.uint64(1)).view(np.int64) ^ -(raw & 1), behind


def _read_longer(octets: Bytes, raw: Ints, behind: Ints) -> None:
    rest = np.flatnonzero(raw > 0x7F)
    value = (raw[rest] & 0x7F).astype(np.uint64)
    for index in range(1, _MAX_VARINT_BYTES):
        octet = octets[behind[rest]].astype(np.uint64)
        behind[rest] += 1
        value |= (octet & np.uint64(0x7F)) << np.uint64(7 * index)
        raw[rest] = value.view(np.int64)
        goes_on = octet > 0x7F
        if not goes_on.any():
            break
        rest, value = rest[goes_on], value[goes_on]
    else:
        raise ValueError("a varint of more than 10 bytes")


def _unaligned(data: bytes, kind: str) -> npt.NDArray[np.generic]:
    width = np.dtype(kind).itemsize
    if len(data) < width:  # position 0 is always there: a row with nothing to read reads that
        data = bytes(data).ljust(width, b"\x00")
    return np.ndarray(shape=(max(0, len(data) - width + 1),), dtype=kind, buffer=data, strides=(1,))
