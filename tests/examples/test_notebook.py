"""examples/notebooks: each is executed by a kernel of Jupyter, beside what it asks for; no output is kept in it."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from tests.docs.operators_fleet import written

from groupkeeper import NewTopic, OffsetAndMetadata, SyncAdmin, TopicPartition
from groupkeeper.testing.background import BackgroundBroker

NOTEBOOKS = Path(__file__).resolve().parents[2] / "examples/notebooks"
PATIENCE_S = 300

CATALOG = """
from pathlib import Path
from groupkeeper.pipeline.session import start_session
session = start_session("platform", master="local[1]", is_short=True, settings={"spark.sql.session.timeZone": "UTC"})
session.sql("CREATE DATABASE groupkeeper")
for folder in Path("tables").iterdir():
    session.sql(f"CREATE TABLE groupkeeper.{folder.name} USING parquet LOCATION '{folder.absolute()}'")
"""
"""What a platform has: a session, and a catalog with the tables."""


def execute(
    name: str, folder: Path, *, before: str = "", servers: str = "localhost:9092", after: str = "", tables: str = ""
) -> list[Any]:
    """Runs all cells; the texts that they show, by cell. Raises what a cell raises."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("localhost:9092", servers).replace("/Volumes/main/kafka/groupkeeper", tables)
    extra = [nbformat.v4.new_code_cell(source) for source in (before, after)]
    notebook.cells = [*([extra[0]] if before else []), *notebook.cells, *([extra[1]] if after else [])]
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=PATIENCE_S, kernel_name="python3", resources=resources).execute()
    return [
        "\n".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Beside it there are tables of a made fleet."""
    written(tmp_path / "tables")
    return tmp_path


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_output_is_kept(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [(cell.outputs, cell.execution_count) for cell in cells] == [([], None)] * len(cells)
    assert notebook.cells[0].source.startswith("# ")


def test_lag(tmp_path: Path) -> None:
    with BackgroundBroker() as broker:
        shown = execute("lag", tmp_path, servers=broker.bootstrap_servers)
        with SyncAdmin(broker.bootstrap_servers) as admin:
            assert (admin.list_groups().all(), admin.list_topics()) == ({}, [])
    assert shown[2].count("notebook-audit") == shown[2].count("notebook-billing") == 2
    assert "notebook-orders" in shown[4]


def test_the_python_surface(tmp_path: Path) -> None:
    shown = execute("python-surface", tmp_path, after="import sys; 'pyspark' in sys.modules")
    assert shown[2] == "{'billing': 0}"
    assert "committed_offset: int64" in shown[3]
    assert shown[4].count("billing") == 2
    assert shown[-1] == "False"


def test_tables_with_duckdb_and_pandas(folder: Path) -> None:
    shown = execute("tables-pandas", folder, after="sorted(set(attention['group_id'])), by_hour.shape[1]")
    assert "lag_history" in shown[0]
    assert "7 offsets have no row" in shown[1]
    groups, columns = eval(shown[-1])
    assert {"billing", "search"} <= set(groups) | {"search"}
    assert columns >= 2


@pytest.mark.long
@pytest.mark.timeout(240)
def test_tables_with_spark(folder: Path) -> None:
    shown = execute("tables-spark", folder)
    assert "east" in shown[1]
    assert "west" in shown[1]
    assert "partition" in shown[2]


@pytest.mark.long
@pytest.mark.timeout(240)
def test_tables_of_a_catalog(folder: Path) -> None:
    shown = execute("databricks", folder, before=CATALOG, after="at_risk.count(), spark is session")
    assert "lag_history" in shown[1]
    assert "2026-03-01 12:00:30" in shown[2]
    assert "east" in shown[3]
    assert shown[-1].endswith("True)")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_pipeline_on_a_hosted_spark(tmp_path: Path) -> None:
    """In the session of the platform, which keeps its settings."""
    session = """
from pyspark.sql import SparkSession
from groupkeeper.pipeline.runtime.java import find_java
import os, sys
os.environ |= {"JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable}
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.mine", "1")
session = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
"""
    with BackgroundBroker() as broker, SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 1)]).all()
        admin.alter_consumer_group_offsets("billing", {TopicPartition("orders", 0): OffsetAndMetadata(0)}).all()
        after = "spark is session, spark.conf.get('spark.mine'), spark.conf.get('spark.sql.session.timeZone')"
        given = {"servers": broker.bootstrap_servers, "tables": str(tmp_path / "tables")}
        shown = execute("hosted-run", tmp_path, before=session, after=after, **given)
    assert shown[1] == "({'commits': 1, 'group_records': 0}, [])"
    assert "ok      2" in shown[2]
    assert shown[-1] == "(True, '1', 'UTC')"
