"""Columns of texts and bytes, from positions in one buffer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from groupkeeper.pipeline.decode.views import Bools, Ints
from groupkeeper.protocol.uuids import uuid_text

_UUID_SIZE = 16
_MAX_BUFFER = 2**31 - 1


def binaries(data: bytes, at: Ints, size: Ints) -> pa.BinaryArray:
    """Bytes by position and size; a size of −1 is null. Positions ascend, and the pieces do not overlap."""
    # The pieces and the gaps between them are an array over the buffer as it is; taking every second one copies
    # the pieces only.
    if not len(at):
        return pa.array([], pa.binary())
    if len(data) > _MAX_BUFFER:
        raise OverflowError(f"{len(data)} bytes of records at once: fetch less at a time")
    bounds = np.empty(2 * len(at), np.int32)
    bounds[0::2] = at
    bounds[1::2] = at + np.maximum(size, 0)
    whole = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
    taken = pa.array(np.arange(0, len(bounds) - 1, 2), mask=size < 0 if size.min() < 0 else None)
    return whole.take(taken)


def texts(data: bytes, at: Ints, size: Ints) -> pa.StringArray:
    """As `binaries`, but texts. Raises pa.ArrowInvalid if one is not UTF-8: `are_valid` shows which."""
    return binaries(data, at, size).cast(pa.string())


def are_valid(data: bytes, at: Ints, size: Ints) -> Bools:
    """Whether each piece is UTF-8."""
    valid = np.ones(len(at), np.bool_)
    try:
        binaries(data, at, size).cast(pa.string())
    except pa.ArrowInvalid:
        for row, (start, length) in enumerate(zip(at.tolist(), size.tolist(), strict=True)):
            try:
                data[start : start + max(0, length)].decode()
            except UnicodeDecodeError:
                valid[row] = False
    return valid


def uuids(data: bytes, at: Ints) -> pa.StringArray:
    """Ids of 16 bytes at positions as Kafka prints them; null where the position is −1, and for the id of all zeros."""
    is_there = at >= 0
    if not is_there.any():
        return pa.nulls(len(at), pa.string())
    octets = np.frombuffer(data, np.uint8)[at[is_there][:, None] + np.arange(_UUID_SIZE)]
    buffers = [None, pa.py_buffer(octets.tobytes())]
    ids = pa.FixedSizeBinaryArray.from_buffers(pa.binary(_UUID_SIZE), len(octets), buffers).dictionary_encode()
    shown = pa.array([_shown(each) for each in ids.dictionary.to_pylist()], pa.string())
    places = np.zeros(len(at), np.int32)
    places[is_there] = ids.indices.to_numpy()
    return shown.take(pa.array(places, mask=~is_there))


def _shown(octets: bytes) -> str | None:
    return uuid_text(octets) if any(octets) else None


def of_numbers(values: npt.NDArray[np.generic], kind: pa.DataType, is_null: Bools | None = None) -> pa.Array:
    """Numbers that fit `kind` as a column, null where `is_null`."""
    mask = is_null if is_null is not None and is_null.any() else None
    return pa.array(values.astype(kind.to_pandas_dtype(), copy=False), mask=mask)
