"""The common parts of the generated codecs: the message base class, error classes, and the slow paths of
variable-length values.

The generated code reads optimistically, and bounds are enforced in three places. A byte or fixed-width value past the
end raises by itself. A count is compared with the remaining bytes before anything is allocated, and in a `LargeRequest`
with its `room`. A text or byte value that runs past the end leaves a position past the end, which the next read or the
final check in `codec.decode` refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct
from struct import pack as _pack
from struct import unpack_from as _unpack_from
from typing import Any, ClassVar, Final, Self, TypeVar

from groupkeeper.native import mypyc_attr
from groupkeeper.protocol import MalformedMessage

M = TypeVar("M", bound="Message")

ZERO_UUID: Final = bytes(16)
"""The uuid of all zeros, Kafka's "no id"."""

MAX_VARINT_BYTES: Final = 5
MAX_TEXT_BYTES: Final = 2**15 - 1
"""Longest string in any encoding: Kafka refuses longer ones, and records and older versions cannot hold them."""


@mypyc_attr(native_class=False)
class LargeRequest(bytes):
    """A request frame with a limit of array elements: the object of an element takes far more memory than its bytes.

    Attributes:
        room: number of elements that decoding may still create; set it before decoding.
    """

    room: int

    def take(self, count: int) -> None:
        self.room -= count
        if self.room < 0:
            raise MalformedMessage(f"more elements than a request of {len(self)} bytes may have")


@mypyc_attr(native_class=False)
class UnsupportedField(ValueError):
    """A field holds a value that the version being written cannot carry."""


@mypyc_attr(native_class=False)
class UnsupportedMessageVersion(ValueError):
    """The message does not have this version in the schemas of this build."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Message:
    """Base of every generated struct: a value with `__slots__`, equality by fields, and a readable repr."""

    __slots__: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        for name in self.__slots__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs and not _same_sequence(mine, theirs):
                return False
        return True

    __hash__ = None  # type: ignore[assignment]  # values hold lists

    def __copy__(self) -> Self:
        made = self.__class__.__new__(self.__class__)
        for name in self.__slots__:
            setattr(made, name, getattr(self, name))
        return made

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


@mypyc_attr(allow_interpreted_subclasses=True)
class RootMessage(Message):
    """A message that is encoded by itself. `API_KEY` is −1 where the message is no request or response."""

    __slots__: ClassVar[tuple[str, ...]] = ()

    API_KEY: ClassVar[int] = -1
    RECORD_TYPE: ClassVar[int] = -1
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_FROM: ClassVar[int]

    @classmethod
    def read(cls, buf: bytes, pos: int, version: int) -> tuple[Self, int]:
        """The message at `pos` and the position after it. Raises low-level errors: use `codec.decode`."""
        raise NotImplementedError

    def write(self, out: bytearray, version: int) -> None:
        """Appends the encoded message to `out`. Use `codec.encode`."""
        raise NotImplementedError


class Rows(Sequence[M]):
    """The structs of a decoded array, stored by column: each struct is built when it is accessed."""

    __slots__ = ("columns", "struct")

    def __init__(self, struct: type[M], columns: tuple[tuple[Any, ...], ...]) -> None:
        self.struct = struct
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index]

    def __iter__(self) -> Iterator[M]:
        return map(self.struct, *self.columns)

    def __eq__(self, other: object) -> bool:
        return _same_sequence(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


def columns_of(rows: Sequence[Message]) -> Sequence[Sequence[Any]]:
    """One sequence per field, in the order of the slots, with its values in all structs; empty without structs."""
    if isinstance(rows, Rows):
        return rows.columns
    return tuple(zip(*[[getattr(row, name) for name in row.__slots__] for row in rows], strict=True))


def _same_sequence(mine: Any, theirs: Any) -> bool:
    # An absent array is the empty tuple, a decoded one a list, or Rows.
    kinds = (list, tuple, Rows)
    return type(mine) in kinds and type(theirs) in kinds and list(mine) == list(theirs)


_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_SHORT_VARINTS: Final = [bytes((value,)) for value in range(0x80)]


def varint(value: int) -> bytes:
    """Unsigned varint of a non-negative integer below 2**35."""
    if value < 0x80:
        return _SHORT_VARINTS[value]
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(buf: bytes, pos: int) -> tuple[int, int]:
    """Unsigned varint at `pos`, at most 32 bits as in Kafka."""
    byte = buf[pos]
    if byte < 0x80:
        return byte, pos + 1
    value = byte & 0x7F
    for index in range(1, MAX_VARINT_BYTES):
        byte = buf[pos + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, pos + index + 1
    raise MalformedMessage(f"unsigned varint at {pos} is longer than 32 bits")


_MOST_TAGS: Final = 1000
"""Limit for one struct. Kafka's messages have fewer than ten; other clients wait while a header is decoded."""


def read_tag_count(buf: bytes, pos: int) -> tuple[int, int]:
    """Number of tagged fields, each of at least two bytes, bounded by the bytes that remain and by `_MOST_TAGS`."""
    count, pos = read_varint(buf, pos)
    if count > min((len(buf) - pos) // 2, _MOST_TAGS):
        raise MalformedMessage(f"{count} tagged fields in {len(buf) - pos} bytes")
    return count, pos


def skip_tags(buf: bytes, pos: int) -> int:
    """The position after a section of tagged fields, all of them unknown."""
    count, pos = read_tag_count(buf, pos)
    for _ in range(count):
        _, pos = read_varint(buf, pos)
        size, pos = read_varint(buf, pos)
        pos += size
    return pos


def read_compact_text(buf: bytes, pos: int) -> tuple[str, int]:
    """A compact string of 127 bytes or more; null is refused (the generated code handles short ones and allowed
    nulls).
    """
    length, start = read_varint(buf, pos)
    if length == 0:
        raise MalformedMessage(f"null string at {pos} where none is allowed")
    if length - 1 > MAX_TEXT_BYTES:
        raise MalformedMessage(f"string of {length - 1} bytes at {pos}, {MAX_TEXT_BYTES} are allowed")
    end = start + length - 1
    if end > len(buf):
        raise MalformedMessage(f"string of {length - 1} bytes at {pos} runs past the end")
    return buf[start:end].decode(), end


def read_compact_bytes(buf: bytes, pos: int) -> tuple[bytes, int]:
    """Compact bytes; null is refused."""
    length, start = read_varint(buf, pos)
    if length == 0:
        raise MalformedMessage(f"null bytes at {pos} where none are allowed")
    end = start + length - 1
    if end > len(buf):
        raise MalformedMessage(f"{length - 1} bytes at {pos} run past the end")
    return buf[start:end], end


def read_text(buf: bytes, pos: int) -> tuple[str, int]:
    """A string with a 16-bit length; null is refused."""
    (length,) = _INT16.unpack_from(buf, pos)
    if length < 0:
        raise MalformedMessage(f"string length {length} at {pos}")
    end = pos + 2 + length
    return buf[pos + 2 : end].decode(), end


def read_nullable_text(buf: bytes, pos: int) -> tuple[str | None, int]:
    """A string with a 16-bit length; −1 is null."""
    (length,) = _INT16.unpack_from(buf, pos)
    if length == -1:
        return None, pos + 2
    return read_text(buf, pos)


def read_nullable_bytes(buf: bytes, pos: int) -> tuple[bytes | None, int]:
    """Bytes with a 32-bit length; −1 is null."""
    (length,) = _INT32.unpack_from(buf, pos)
    if length == -1:
        return None, pos + 4
    return read_bytes(buf, pos)


def read_bytes(buf: bytes, pos: int) -> tuple[bytes, int]:
    """Bytes with a 32-bit length; null is refused."""
    (length,) = _INT32.unpack_from(buf, pos)
    start = pos + 4
    if length < 0 or length > len(buf) - start:
        raise MalformedMessage(f"bytes length {length} at {pos}")
    return buf[start : start + length], start + length


def read_compact_count(buf: bytes, pos: int) -> tuple[int, int]:
    """One more than the number of elements of a compact array (0 is null), bounded by the bytes that remain."""
    count = buf[pos]
    if count < 0x80:  # inlined, as many requests have such an array
        pos += 1
    else:
        count, pos = read_varint(buf, pos)
    if count - 1 > len(buf) - pos:
        raise MalformedMessage(f"array of {count - 1} elements in {len(buf) - pos} bytes")
    if type(buf) is LargeRequest:
        buf.take(count - 1)
    return count, pos


def read_count(buf: bytes, pos: int) -> tuple[int, int]:
    """Number of elements of an array with a 32-bit length (−1 is null), bounded by the bytes that remain."""
    (count,) = _INT32.unpack_from(buf, pos)
    pos += 4
    if count < -1 or count > len(buf) - pos:
        raise MalformedMessage(f"array of {count} elements in {len(buf) - pos} bytes")
    if type(buf) is LargeRequest:
        buf.take(count)
    return count, pos


def refuse_null(what: str, pos: int) -> MalformedMessage:
    return MalformedMessage(f"null {what} at {pos} where none is allowed")


def refuse_tag(tag: int) -> MalformedMessage:
    return MalformedMessage(f"tagged field {tag} does not fill its announced size")


_LONG_RUN: Final = 1000


def read_run(buf: bytes, pos: int, count: int, letters: str, width: int) -> tuple[Any, ...]:
    """The fields of `count` structs of the same size, `width`, one struct after the other."""
    if count * width > len(buf) - pos:
        raise MalformedMessage(f"array of {count} structs in {len(buf) - pos} bytes")
    return (_run(letters, count) if count < _LONG_RUN else Struct(">" + letters * count)).unpack_from(buf, pos)


@lru_cache
def _run(letters: str, count: int) -> Struct:
    return Struct(">" + letters * count)


def read_numbers(buf: bytes, pos: int, count: int, code: str, width: int) -> tuple[list[int], int]:
    """`count` fixed-width numbers of struct format `code`."""
    end = pos + count * width
    if end > len(buf):
        raise MalformedMessage(f"array of {count} numbers at {pos} runs past the end")
    return list(_unpack_from(f">{count}{code}", buf, pos)), end


def write_numbers(out: bytearray, values: Sequence[int], code: str) -> None:
    out += _pack(f">{len(values)}{code}", *values)


def write_text(out: bytearray, text: str) -> None:
    encoded = text.encode()
    out += _INT16.pack(len(encoded))
    out += encoded


def write_compact_bytes(out: bytearray, value: bytes) -> None:
    out += varint(len(value) + 1)
    out += value


def write_bytes(out: bytearray, value: bytes) -> None:
    out += _INT32.pack(len(value))
    out += value


def absent(field: str, version: int) -> UnsupportedField:
    return UnsupportedField(f"{field} has a value that version {version} cannot carry")
