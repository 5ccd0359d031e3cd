"""Tables of what there is now are made of files where they are: these have times with their zone, and statistics."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.spark.transforms.test_status import Cases, behind, commit_intervals, put_back
from tests.spark.transforms.traces import (
    HOUR,
    facts_of,
    frame,
    moves_of,
    ms,
    paces_of,
    rewinds_of,
    seconds_of,
    table_of,
)

from groupkeeper.pipeline.present.moved import recent_rewinds
from groupkeeper.pipeline.present.status import status
from groupkeeper.pipeline.relations import Rows, loaded
from groupkeeper.pipeline.storage.output import open_output
from groupkeeper.pipeline.tables import GROUP_EVENTS, GROUP_RECORDS, GROUPS, LAG, LOG_OFFSETS, REWINDS, Table
from groupkeeper.pipeline.tables.schema import TIME
from groupkeeper.pipeline.tables.state import GROUP_FACTS, PACES


@pytest.mark.parametrize("writer", ["Spark", "this process"])
def test_times_of_files_are_compared(spark: SparkSession, tmp_path: Path, writer: str) -> None:
    cases = Cases()
    for add in (commit_intervals, behind, put_back):
        add(cases)
    history = cases.trace.commits()
    back = rewinds_of(moves_of(history, table_of(GROUP_EVENTS, [])))
    facts = facts_of(table_of(GROUP_RECORDS, []), table_of(GROUP_EVENTS, cases.events))
    with open_output(spark, str(tmp_path)) as output:

        def there(rows: pa.Table, table: Table) -> Rows:
            given = frame(spark, table, rows.to_pylist()) if writer == "Spark" else rows
            return output.rows(table, output.stage(given, table).files)

        rewinds = there(back, REWINDS)
        given = (
            there(paces_of(history), PACES), there(table_of(LAG, cases.lags), LAG), rewinds,
            there(table_of(GROUPS, []), GROUPS), there(facts, GROUP_FACTS),
        )  # fmt: skip
        _check_files(tmp_path, "rewind_time")
        rows = [row for row in status(*given).to_pylist() if row["topic"] is None]
        assert {row["group_id"]: (row["status"], seconds_of(row["since_time"])) for row in rows} == cases.wanted
        times = sorted(seconds_of(time) or 0.0 for time in back["rewind_time"].to_pylist())
        since = times[len(times) // 2]
        found = recent_rewinds(REWINDS.arrow.empty_table(), rewinds, LOG_OFFSETS.arrow.empty_table(), {}, ms(since))
        assert sorted(seconds_of(each) or 0.0 for each in found["rewind_time"].to_pylist()) == [
            each for each in times if each >= since
        ]
        whole = loaded(given[1])
        late = whole.filter(pc.greater_equal(whole["measured_time"], pa.scalar(ms(8 * HOUR) * 1000, TIME)))
        wanted = [row["group_id"] for row in cases.lags if row["measured_time"].timestamp() * 1000 >= ms(8 * HOUR)]
        assert sorted(late["group_id"].to_pylist()) == sorted(wanted)


def _check_files(root: Path, column: str) -> None:
    """Whether there are files with statistics of this column, whose times are UTC."""
    found = 0
    for path in root.rglob("*.parquet"):
        whole = pq.read_metadata(path)
        names = [whole.schema.column(number).path for number in range(whole.num_columns)]
        if column not in names or not whole.num_row_groups:
            continue
        own = whole.row_group(0).column(names.index(column))
        assert own.statistics.has_min_max
        assert pq.read_schema(path).field(column).type.tz == "UTC"
        found += 1
    assert found
