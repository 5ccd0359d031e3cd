"""`--conf` of `groupkeeper pipeline`: how settings of Spark's are read."""

from argparse import Namespace
from typing import Any

import pytest

from groupkeeper.cli.framework.commands import parser as command_parser
from groupkeeper.cli.pipeline import lake
from groupkeeper.pipeline.errors import SourceError


def test_a_spark_without_the_lake_of_the_directory_is_told_which_tables_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lake, "_known_format", lambda options: "delta")
    monkeypatch.setattr("groupkeeper.pipeline.runtime.lake._installed", lambda: "4.3.0")
    options = Namespace(settings=[], remote=None, tables="t", table_format=None)
    with pytest.raises(SourceError, match=r"^the tables in t are of delta: no package of delta is known for Spark 4"):
        lake.settings_of(options)
    with pytest.raises(SourceError, match=r"^no package of delta"):
        lake.settings_of(Namespace(**{**vars(options), "table_format": "delta"}))


def test_a_lake_that_the_directory_has_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = {"format": "iceberg", "catalog": "main", "namespace": "ours", "version_hours": 168}
    monkeypatch.setattr("groupkeeper.pipeline.storage.ledger.stored_lake", lambda directory: stored)
    words = ["pipeline", "snapshot", "--bootstrap-server", "h:1", "--tables", "t"]

    def chosen(*more: str) -> Any:
        options = command_parser([*words, *more]).parse_args([*words, *more])
        lake.check_lake(options)
        return lake.keeping(options)["lake"]

    assert chosen() is None
    assert chosen("--keep-versions", "12h").as_json() == {**stored, "version_hours": 12}
    assert chosen("--table-format", "iceberg").as_json() == stored
    for other in ("parquet", "delta"):
        with pytest.raises(SystemExit):
            chosen("--table-format", other)
        assert "--table-format: the tables in t are of iceberg: leave it out, or choose" in capsys.readouterr().err
