"""The tables' documentation is written from their schemas, which Spark and Arrow agree on."""

from pathlib import Path

from tools import pipeline_tables

from groupkeeper.pipeline.tables import TABLES

ROOT = Path(__file__).resolve().parents[2]


def test_reference_is_up_to_date() -> None:
    assert (ROOT / "docs/pipeline-tables.md").read_text() == pipeline_tables.text(), "run `make docs`"


def test_keys_are_columns_and_names_are_told_apart() -> None:
    assert len({table.name for table in TABLES}) == len(TABLES)
    for table in TABLES:
        assert set(table.key) <= set(table.names), table.name
        assert len(set(table.names)) == len(table.names), table.name
        assert all(column.meaning for column in table.columns), table.name
