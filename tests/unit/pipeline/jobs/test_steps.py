"""The steps of a refresh, the list of tables and the recorded tables know the same tables."""

from tests.spark.corpus.recorded import FOLDER

from groupkeeper.pipeline.jobs.steps import STEPS
from groupkeeper.pipeline.tables import COMMITS, DECODED, GROUP_RECORDS, OFFSETS_AS_OF, SCAN_TIME, TABLES
from groupkeeper.pipeline.tables.state import CARRIED

NO_STEPS = {COMMITS.name, GROUP_RECORDS.name, OFFSETS_AS_OF.name, SCAN_TIME.name}
"""What the reading of the log, and commands of their own, write."""
MADE = [step for step in STEPS if step.is_published and step.table not in CARRIED]


def test_each_table_is_made_by_one_step() -> None:
    assert sorted(step.table.name for step in MADE) == sorted({table.name for table in TABLES} - NO_STEPS)


def test_the_rows_of_each_step_are_recorded() -> None:
    recorded = {path.stem for path in FOLDER.glob("*.txt")}
    opened = {f"{step.table.name}.open" for step in MADE if step.adds}
    known = {step.table.name for step in MADE} | opened | {table.name for table in (DECODED, COMMITS, GROUP_RECORDS)}
    assert recorded == known, "run: python -m tests.spark.corpus.recorded"
