"""The steps of a refresh, the list of tables and the recorded tables know the same tables."""

import itertools

from tests.spark.corpus.recorded import FOLDER

from groupkeeper.pipeline.jobs.steps import INPUTS, STEPS, Job
from groupkeeper.pipeline.tables import COMMITS, DECODED, GROUP_RECORDS, LAG, OFFSETS_AS_OF, SCAN_TIME, TABLES, TOPICS
from groupkeeper.pipeline.tables.state import CARRIED

NO_STEPS = {COMMITS.name, GROUP_RECORDS.name, OFFSETS_AS_OF.name, SCAN_TIME.name}
"""What the reading of the log, and commands of their own, write."""
MADE = [step for step in STEPS if step.is_published and step.table not in CARRIED]


def test_each_table_is_made_by_one_step() -> None:
    assert sorted(step.table.name for step in MADE) == sorted({table.name for table in TABLES} - NO_STEPS), (
        "a published table is in TABLES of pipeline/tables and in STEPS; another step has `is_published=False`"
    )


def test_the_rows_of_each_step_are_recorded() -> None:
    recorded = {path.stem for path in FOLDER.glob("*.txt")}
    opened = {f"{step.table.name}.open" for step in MADE if step.adds}
    known = {step.table.name for step in MADE} | opened | {table.name for table in (DECODED, COMMITS, GROUP_RECORDS)}
    assert recorded == known, "run: python -m tests.spark.corpus.recorded"


def test_a_table_that_goes_on_from_its_earlier_rows_is_carried() -> None:
    adds = {step.table for step in STEPS if step.adds}
    read = {table for each in INPUTS.values() for table in each.then}
    others = {table.name for table in read - {*CARRIED} - adds if not table.is_carried}
    assert others == {LAG.name, TOPICS.name}, "set is_carried=True, or a rebuild counts twice"


def test_steps_of_a_job_stand_together() -> None:
    jobs = [job for job, _ in itertools.groupby(step.job for step in STEPS) if job is not Job.ASKED]
    assert len(jobs) == len({*jobs}), "each job has its steps one after another, but for those that ask clusters"
