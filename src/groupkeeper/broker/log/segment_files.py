"""The files of segments in a partition's directory: removal, replacement, and repair after a kill.

The suffixes are Apache Kafka's. A removed segment is renamed to `.deleted` and deleted later. Compaction writes a
segment with the suffix `.cleaned`; once its log is renamed to `.swap`, it is valid and the segments that it replaces
are not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from logging import getLogger

from groupkeeper.broker.log.scan import scan
from groupkeeper.broker.log.segment import ABORTED, CHECKSUMS, INDEX_SUFFIXES, file_name
from groupkeeper.protocol.record_batch import HEADER_SIZE
from groupkeeper.protocol.uuids import uuid_of

_log = getLogger("groupkeeper.broker")

PARTITION_METADATA = "partition.metadata"
LOG = ".log"
INDEXES = (*INDEX_SUFFIXES, ABORTED, CHECKSUMS)
CLEANED = ".cleaned"
SWAP = ".swap"
DELETED = ".deleted"
MISPLACED = ".misplaced"
SNAPSHOT = ".snapshot"
_DIGITS = 20
_OURS = (LOG, *INDEXES, SNAPSHOT)


def topic_id_of(directory: str) -> bytes | None:
    """The id of the topic that a partition's directory belongs to; None when the directory has no id."""
    try:
        with open(os.path.join(directory, PARTITION_METADATA), encoding="utf-8") as file:
            lines = dict(line.split(": ", 1) for line in file.read().splitlines() if ": " in line)
        return uuid_of(lines["topic_id"])
    except (FileNotFoundError, KeyError, ValueError):
        return None


def retire(directory: str, base_offset: int) -> list[str]:
    """Renames the files of a removed segment, and returns their new paths. Raises OSError."""
    retired = []
    for suffix in (LOG, *INDEXES):
        path = os.path.join(directory, file_name(base_offset, suffix))
        with suppress(FileNotFoundError):
            os.rename(path, path + DELETED)
            retired.append(path + DELETED)
    return retired


def swap_steps(directory: str, base_offset: int, replaced: Sequence[int]) -> Iterator[tuple[str, str]]:
    """The renames, in order, with which the `.cleaned` segment replaces others; missing source files are skipped.

    If its log is already renamed to `.swap`, `repair` completes the replacement; otherwise it undoes it.
    """

    def path(base: int, suffix: str) -> str:
        return os.path.join(directory, file_name(base, suffix))

    for suffix in (*INDEXES, LOG):
        yield path(base_offset, suffix + CLEANED), path(base_offset, suffix + SWAP)
    for base in replaced:
        for suffix in (LOG, *INDEXES):
            yield path(base, suffix), path(base, suffix + DELETED)
    for suffix in (*INDEXES, LOG):
        yield path(base_offset, suffix + SWAP), path(base_offset, suffix)


def repair(directory: str, names: Iterable[str]) -> list[str]:
    """Completes or undoes an interrupted replacement; returns the names of the log files, sorted. Raises OSError."""
    present = set(names)
    for name in sorted(present):
        if _is_ours(name, (CLEANED, DELETED, ".tmp")):
            _remove(directory, name, present)
    for name in sorted(present):
        if _is_ours(name, (SWAP,)) and name.endswith(LOG + SWAP):
            _complete_swap(directory, name, present)
    for name in sorted(present):
        has_no_log = _base_of(name, INDEXES) is not None and name.split(".")[0] + LOG not in present
        if has_no_log or _is_ours(name, (SWAP,)):
            _remove(directory, name, present)
    return sorted(name for name in present if _base_of(name, (LOG,)) is not None)


def without_copies(directory: str, bases: Sequence[int]) -> list[int]:
    """Renames segment files that are misnamed copies of others; returns the other base offsets. Raises OSError."""
    base_by_head: dict[bytes, int] = {}
    left = list(bases)
    for base in bases:
        with open(os.path.join(directory, file_name(base)), "rb") as file:
            head = file.read(HEADER_SIZE)
        other = base_by_head.setdefault(head, base)
        if other != base and len(head) == HEADER_SIZE:
            copy = base if base > int.from_bytes(head[:8], "big") else other
            base_by_head[head] = base + other - copy
            left.remove(copy)
            path = os.path.join(directory, file_name(copy))
            os.rename(path, path + MISPLACED)
            _log.error("%s is a copy of %s, and is now %s", path, file_name(base + other - copy), path + MISPLACED)
    return left


def _complete_swap(directory: str, name: str, present: set[str]) -> None:
    base_offset = int(name.split(".")[0])
    last_offset = max(_last_offset(os.path.join(directory, name), base_offset), base_offset)
    _log.info("%s: completing an interrupted compaction", os.path.join(directory, name))
    for other in sorted(present):
        base = _base_of(other, (LOG, *INDEXES))
        if base is not None and base_offset <= base <= last_offset:
            _remove(directory, other, present)
    os.rename(os.path.join(directory, name), os.path.join(directory, name.removesuffix(SWAP)))
    present.discard(name)
    present.add(name.removesuffix(SWAP))


def _last_offset(path: str, base_offset: int) -> int:
    """Offset of the last record of a segment file, −1 when it has none."""
    last_offset = -1
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for _, header in scan(descriptor, os.fstat(descriptor).st_size, base_offset, 2**63 - 1, 0, []):
            last_offset = header.last_offset
    finally:
        os.close(descriptor)
    return last_offset


def _base_of(name: str, suffixes: Iterable[str]) -> int | None:
    """The base offset in a file's name that ends with one of the suffixes, or None."""
    for suffix in suffixes:
        stem = name.removesuffix(suffix)
        if stem != name and len(stem) == _DIGITS and stem.isdecimal() and stem.isascii():
            return int(stem)
    return None


def _is_ours(name: str, marks: Iterable[str]) -> bool:
    """Whether a file belongs to a segment and has one of these suffixes."""
    return any(name.endswith(mark) and _base_of(name.removesuffix(mark), _OURS) is not None for mark in marks)


def _remove(directory: str, name: str, present: set[str]) -> None:
    os.unlink(os.path.join(directory, name))
    present.discard(name)
