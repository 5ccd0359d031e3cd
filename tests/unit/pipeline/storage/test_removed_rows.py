"""How many rows of the history a removal of old rows takes out."""

import pyarrow as pa

from groupkeeper.pipeline.storage.output import _add_missing


def places(*partitions: int) -> pa.Table:
    return pa.table({"cluster": ["c"] * len(partitions), "log_partition": pa.array(partitions, pa.int32())})


def test_partitions_from_which_nothing_was_removed_are_not_named() -> None:
    """Otherwise a row that is lost there later would be taken for one that was removed on purpose."""
    counts: dict[str, dict[int, int]] = {}
    _add_missing(counts, places(1, 1, 2, 2), places(1, 2, 2))
    assert counts == {"c": {1: 1}}
    _add_missing(counts, places(1, 2), places(1, 2))
    assert counts == {"c": {1: 1}}
    _add_missing(counts, places(1, 3), places())
    assert counts == {"c": {1: 2, 3: 1}}
