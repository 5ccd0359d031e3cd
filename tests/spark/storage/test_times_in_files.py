"""Tables of what there is now are made of files where they are: these have times with their zone, and statistics."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.transforms.test_status import Cases, behind, commit_intervals, put_back
from tests.spark.transforms.traces import HOUR, frame, lag_frame, ms, rewinds_of, seconds_of

from groupkeeper.pipeline.present.moved import recent_rewinds
from groupkeeper.pipeline.present.sql import Rows, empty, made
from groupkeeper.pipeline.present.status import status
from groupkeeper.pipeline.storage.output import open_output
from groupkeeper.pipeline.tables import GROUP_EVENTS, GROUP_RECORDS, GROUPS, LAG, LOG_OFFSETS, REWINDS, Table
from groupkeeper.pipeline.tables.state import GROUP_FACTS, PACES
from groupkeeper.pipeline.transforms.group_facts import group_facts
from groupkeeper.pipeline.transforms.moves import moves
from groupkeeper.pipeline.transforms.paces import paces


@pytest.mark.parametrize("writer", ["Spark", "this process"])
def test_times_of_files_are_compared(spark: SparkSession, tmp_path: Path, writer: str) -> None:
    cases = Cases()
    for add in (commit_intervals, behind, put_back):
        add(cases)
    history = cases.trace.commits(spark)
    back = rewinds_of(spark, moves(history, frame(spark, GROUP_EVENTS, [])))
    facts = group_facts(frame(spark, GROUP_RECORDS, []), frame(spark, GROUP_EVENTS, cases.events))
    with open_output(spark, str(tmp_path)) as output:

        def there(rows: DataFrame, table: Table) -> Rows:
            given = rows if writer == "Spark" else rows.toArrow().cast(table.arrow).to_reader()
            return output.rows(output.stage(given, table))

        rewinds = there(back.repartition(2, "group_id"), REWINDS)
        given = (
            there(paces(history), PACES), there(lag_frame(spark, *cases.lags), LAG), rewinds,
            there(frame(spark, GROUPS, cases.groups), GROUPS), there(facts, GROUP_FACTS),
        )  # fmt: skip
        _check_files(tmp_path, "rewind_time")
        rows = [row for row in status(*given).read_all().to_pylist() if row["topic"] is None]
        assert {row["group_id"]: (row["status"], seconds_of(row["since_time"])) for row in rows} == cases.wanted
        times = sorted(seconds_of(row.rewind_time) or 0.0 for row in back.collect())
        since = times[len(times) // 2]
        found = recent_rewinds(empty(REWINDS), rewinds, empty(LOG_OFFSETS), {}, ms(since))
        assert sorted(seconds_of(each) or 0.0 for each in found["rewind_time"].to_pylist()) == [
            each for each in times if each >= since
        ]
        query = "SELECT * FROM lags WHERE measured_time >= make_timestamp($ms * 1000)"
        late = made(LAG, query, {"lags": given[1]}, {"ms": ms(8 * HOUR)}).read_all()
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
