"""What a program left in `__consumer_offsets`, read as any consumer may read it."""

import time
from collections.abc import Collection

from tests.differential.wire import Pool

from groupkeeper.protocol import messages as m
from groupkeeper.protocol.messages.fetch_request import FetchPartition, FetchTopic
from groupkeeper.protocol.offsets_topic import Entry, Tombstone, UnknownRecord, decode_record
from groupkeeper.protocol.record_batch import iter_headers, read_records

PARTITIONS = 4
VERSION = 12
"""The last version of Fetch that names topics."""

Line = tuple[Entry | Tombstone, int | None]
"""A record and the version its value was written in; None for a tombstone."""


class LogTail:
    """Reads on from where it stopped."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._offsets = [0] * PARTITIONS

    def read(self, groups: Collection[str], at_least: int = 0, seconds: float = 0.0) -> list[Line]:
        """New records of these groups, by partition; waits for `at_least` so many, but not for longer than told."""
        deadline = time.monotonic() + seconds
        lines: list[Line] = []
        while True:
            before = list(self._offsets)
            for index in range(PARTITIONS):
                lines += [line for line in self._read(index) if _group_of(line) in groups]
            has_moved = before != self._offsets
            if not has_moved and (len(lines) >= at_least or time.monotonic() > deadline):
                return lines

    def _read(self, index: int) -> list[Line]:
        partition = FetchPartition(index, fetch_offset=self._offsets[index], partition_max_bytes=1 << 20)
        request = m.FetchRequest(max_bytes=1 << 20, topics=[FetchTopic("__consumer_offsets", partitions=[partition])])
        data = self._pool.ask(request, VERSION).responses[0].partitions[0]
        assert data.error_code == 0
        lines: list[Line] = []
        for position, header in iter_headers(data.records or b""):
            assert header.base_offset <= self._offsets[index], f"offsets {self._offsets[index]} ff. are missing"
            for record in read_records(data.records or b"", position):
                if record.offset < self._offsets[index]:
                    continue
                decoded = decode_record(record.key or b"", record.value)
                assert not isinstance(decoded, UnknownRecord)
                version = None if record.value is None else int.from_bytes(record.value[:2], "big")
                lines.append((decoded, version))
            self._offsets[index] = max(self._offsets[index], header.next_offset)
        return lines


def _group_of(line: Line) -> str:
    """Keys of the classic protocol call it otherwise."""
    key = line[0].key
    return str(getattr(key, "group", "") or getattr(key, "group_id", ""))
