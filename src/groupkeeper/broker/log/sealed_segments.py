"""Segments without further appends: the files beside them with which a start needn't read them."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import pairwise
from logging import getLogger

from groupkeeper.broker.log.producer_snapshot import decode_aborted, decode_producers, encode_aborted, encode_producers
from groupkeeper.broker.log.segment import INDEX_SUFFIXES, file_name
from groupkeeper.broker.log.segment_files import SNAPSHOT
from groupkeeper.broker.log.segment_index import replace_bytes
from groupkeeper.broker.storage.directory import sync_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from groupkeeper.broker.log.producers import Aborted, Producers
    from groupkeeper.broker.log.segment import Segment

_log = getLogger("groupkeeper.broker")

ABORTED = ".txnindex"


def seal(segment: Segment, producers: Producers, directory: str, next_offset: int | None = None) -> None:
    """Writes the indexes of a segment that gets no more records, and the producers as they are at `next_offset`.

    If a file cannot be written, the next start reads the segment instead.
    """
    try:
        segment.save_index()
        save_aborted(segment, [one for one in producers.aborted if one.last_offset >= segment.base_offset])
    except OSError as error:
        _log.warning("%s: cannot write its index: %s", segment.path, error.strerror)
        for suffix in INDEX_SUFFIXES:
            with suppress(OSError):
                os.unlink(segment.file(suffix))
    if next_offset is not None:
        save_producers(producers, directory, next_offset)


def save_aborted(segment: Segment, aborted: Sequence[Aborted]) -> None:
    """Writes the aborted transactions of a segment, if there are any. Raises OSError."""
    if aborted:
        replace_bytes(segment.file(ABORTED), encode_aborted(aborted))
    else:
        with suppress(FileNotFoundError):
            os.unlink(segment.file(ABORTED))


def save_producers(producers: Producers, directory: str, offset: int) -> None:
    """Writes the state of producers at the start of the last segment; removes older snapshots."""
    name = file_name(offset, SNAPSHOT)
    try:
        replace_bytes(os.path.join(directory, name), encode_producers(producers))
        for other in os.listdir(directory):
            if other.endswith(SNAPSHOT) and other[: -len(SNAPSHOT)].isdigit() and other != name:
                os.unlink(os.path.join(directory, other))
    except OSError as error:
        _log.warning("%s: cannot write %s: %s", directory, name, error.strerror)
        with suppress(OSError):
            os.unlink(os.path.join(directory, name))


def load_sealed(segments: Sequence[Segment], producers: Producers, directory: str) -> int:
    """Loads all segments but the last, and the producers, from the stored files; returns the number of segments that
    need not be read.

    The number is 0 when a file is missing or doesn't match; then the producers are unchanged.
    """
    if len(segments) < 2:
        return 0
    try:
        for segment, following in pairwise(segments):
            segment.load_index(following.base_offset)
        aborted = [one for segment in segments[:-1] for one in _aborted_in(segment)]
        with open(os.path.join(directory, file_name(segments[-1].base_offset, SNAPSHOT)), "rb") as file:
            decode_producers(file.read(), producers)
    except (OSError, ValueError) as error:
        _log.info("%s: reading all segments, as the stored indexes cannot be used: %s", directory, error)
        for segment in segments:
            segment.forget_index()
        return 0
    producers.aborted += aborted
    return len(segments) - 1


def sync_sealed(segments: Sequence[Segment], directory: str, recovery_point: int) -> None:
    """Syncs the files of all segments but the last to the disk, from the recovery point on. Raises OSError."""
    for segment, following in pairwise(segments):
        if following.base_offset > recovery_point:
            sync_file(segment.path)
            for suffix in (*INDEX_SUFFIXES, ABORTED):
                with suppress(FileNotFoundError):
                    sync_file(segment.file(suffix))
    with suppress(FileNotFoundError):
        sync_file(os.path.join(directory, file_name(segments[-1].base_offset, SNAPSHOT)))
    sync_file(directory)


def _aborted_in(segment: Segment) -> list[Aborted]:
    try:
        with open(segment.file(ABORTED), "rb") as file:
            return decode_aborted(file.read())
    except FileNotFoundError:
        return []
