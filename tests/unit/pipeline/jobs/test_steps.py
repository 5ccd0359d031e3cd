"""The steps of a refresh and the list of tables know the same tables."""

from groupkeeper.pipeline.jobs.steps import STEPS
from groupkeeper.pipeline.tables import COMMITS, GROUP_RECORDS, OFFSETS_AS_OF, SCAN_TIME, TABLES
from groupkeeper.pipeline.tables.state import CARRIED

NO_STEPS = {COMMITS.name, GROUP_RECORDS.name, OFFSETS_AS_OF.name, SCAN_TIME.name}
"""What the reading of the log, and commands of their own, write."""


def test_each_table_is_made_by_one_step() -> None:
    made = [step.table.name for step in STEPS if step.is_published and step.table not in CARRIED]
    assert sorted(made) == sorted({table.name for table in TABLES} - NO_STEPS)
