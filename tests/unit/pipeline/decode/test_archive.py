"""Archived records come back decoded and whole, however many they are."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from groupkeeper.pipeline.decode.archive import archive_parts, read_archive
from groupkeeper.pipeline.tables import DECODED
from groupkeeper.protocol import messages as m
from groupkeeper.protocol.offsets_topic import Entry, encode_record

COMMITS = 40_000
NOT_UTF8 = 20_000


def test_archive_of_several_batches(tmp_path: Path) -> None:
    pairs = [
        encode_record(Entry(m.OffsetCommitKey(f"g{number % 7}", "orders", 1), m.OffsetCommitValue(number, 3, "m", 5)))
        for number in range(COMMITS)
    ]
    key, value = pairs[NOT_UTF8]
    assert key is not None
    pairs[NOT_UTF8] = key.replace(b"orders", b"order\xff"), value
    table = pa.table({"key": [key for key, _ in pairs], "value": [value for _, value in pairs]})
    pq.write_table(table.append_column("offset", pa.array(range(COMMITS))), tmp_path / "records.parquet")

    (part,) = archive_parts(str(tmp_path))
    batches = list(read_archive(str(tmp_path), part, "east"))

    assert len(batches) > 1
    found = pa.Table.from_batches(batches, DECODED.arrow).sort_by("log_offset")
    found.validate(full=True)
    assert found["log_offset"].to_pylist() == list(range(COMMITS))
    assert set(found["cluster"].to_pylist()) == {"east"}
    wanted = [None if number == NOT_UTF8 else number for number in range(COMMITS)]
    assert found["committed_offset"].to_pylist() == wanted
    assert found["group_id"].to_pylist() == [None if number is None else f"g{number % 7}" for number in wanted]
    assert [each is not None for each in found["problem"].to_pylist()] == [each is None for each in wanted]
