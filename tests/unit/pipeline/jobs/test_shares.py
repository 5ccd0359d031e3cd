"""How tasks read their inputs."""

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from groupkeeper.pipeline.jobs import shares
from groupkeeper.pipeline.jobs.shares import ShareRows, rows_of_share
from groupkeeper.pipeline.relations import Rows, loaded


def test_a_column_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pa.table({"group_id": [f"g{number}" for number in range(20)], "a": range(20), "b": range(20, 40)})
    asked: list[str] = []

    def load(rows: Rows, names: list[str]) -> pa.Table:
        asked.extend(names)
        return loaded(rows, names)

    monkeypatch.setattr(shares, "loaded", load)
    for count in (1, 3):
        asked.clear()
        rows = ShareRows(pads.dataset(whole), 0, count)
        own = rows_of_share(whole, 0, count)
        for names in (["a"], ["b", "a"], ["a"]):
            assert loaded(rows, names) == own.select(names)
        assert loaded(rows) == own
        assert sorted(asked) == ["a", "b", "group_id"]
