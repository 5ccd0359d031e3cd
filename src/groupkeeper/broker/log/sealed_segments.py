"""Sealed segments, which get no more appends: the files beside them that let a start load them without reading them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from logging import getLogger

from groupkeeper.broker.log.producer_snapshot import decode_producers, encode_aborted, encode_producers
from groupkeeper.broker.log.producers import Aborted, Producers
from groupkeeper.broker.log.segment import ABORTED, CHECKSUMS, Segment, file_name
from groupkeeper.broker.log.segment_files import INDEXES, SNAPSHOT
from groupkeeper.broker.log.segment_index import replace_bytes
from groupkeeper.broker.storage.directory import sync_file

_log = getLogger("groupkeeper.broker")


def seal(segment: Segment, producers: Producers, directory: str, next_offset: int | None = None) -> None:
    """Writes the indexes of a segment that gets no more records, and the producers as they are at `next_offset`.

    If a file cannot be written, the next start reads the segment instead.
    """
    try:
        save_aborted(segment, [one for one in producers.aborted if one.last_offset >= segment.base_offset])
        segment.save()
    except OSError as error:
        _log.warning("%s: cannot write its index: %s", segment.path, error.strerror)
        with suppress(OSError):
            os.unlink(segment.file(CHECKSUMS))
    if next_offset is not None:
        save_producers(producers, directory, next_offset, segment.base_offset)


def save_aborted(segment: Segment, aborted: Sequence[Aborted]) -> None:
    """Writes the aborted transactions of a segment, if there are any. Raises OSError."""
    if aborted:
        replace_bytes(segment.file(ABORTED), encode_aborted(aborted))
    else:
        with suppress(FileNotFoundError):
            os.unlink(segment.file(ABORTED))


def save_producers(producers: Producers, directory: str, offset: int, oldest: int) -> None:
    """Writes the state of producers at an offset; removes snapshots of offsets before `oldest`."""
    name = file_name(offset, SNAPSHOT)
    try:
        replace_bytes(os.path.join(directory, name), encode_producers(producers))
        for other in os.listdir(directory):
            stem = other.removesuffix(SNAPSHOT)
            if stem != other and stem.isdecimal() and int(stem) < oldest:
                os.unlink(os.path.join(directory, other))
    except OSError as error:
        _log.warning("%s: cannot write %s: %s", directory, name, error.strerror)
        with suppress(OSError):
            os.unlink(os.path.join(directory, name))


def load_sealed(segments: Sequence[Segment], producers: Producers, directory: str, recovery_point: int) -> int:
    """Loads segments, and the producers' state after them, from the stored files; returns the number of segments that
    need not be read: all, all but the last, or 0. It is 0 when a file is missing or damaged, or segments may not be
    flushed; then the producers are unchanged.
    """
    if not segments or recovery_point < segments[-1].base_offset:
        return 0
    limits = [segment.base_offset for segment in segments[1:]]
    aborted = []
    loaded = 0
    try:
        for segment, limit in zip(segments, [*limits, recovery_point], strict=True):
            aborted.append(segment.load(limit))
            loaded += 1
    except (OSError, ValueError) as error:
        if loaded < len(limits):
            _log.warning("%s: reading all segments, as a file beside them cannot be used: %s", directory, error)
    for count in range(loaded, max(len(limits) - 1, 0), -1):
        end = segments[count - 1].next_offset if count == len(segments) else limits[-1]
        try:
            with open(os.path.join(directory, file_name(end, SNAPSHOT)), "rb") as file:
                decode_producers(file.read(), producers)
        except (OSError, ValueError) as error:
            _log.warning("%s: reading segments, as the producers at offset %d are not known: %s", directory, end, error)
            continue
        producers.aborted += [one for some in aborted[:count] for one in some]
        return count
    for segment in segments:
        segment.forget()
    return 0


def sync_segments(segments: Sequence[Segment], ends: Sequence[int], directory: str, recovery_point: int) -> None:
    """Flushes segments that end after the recovery point, with their files, to disk. Raises OSError."""
    for segment, end in zip(segments, ends, strict=False):
        if end > recovery_point:
            sync_file(segment.path)
            for suffix in INDEXES:
                with suppress(FileNotFoundError):
                    sync_file(segment.file(suffix))
    with suppress(FileNotFoundError):
        sync_file(os.path.join(directory, file_name(ends[-1], SNAPSHOT)))
    sync_file(directory)
