"""The steps of a refresh, the list of tables and the recorded tables know the same tables."""

import itertools
import re
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.corpus.recorded import DIGESTED, FOLDER

from groupkeeper.pipeline.jobs.log_offsets import Clusters
from groupkeeper.pipeline.jobs.steps import STEPS, Job, RefreshContext, Step, before, inputs_of, rows_of, then
from groupkeeper.pipeline.kafka.options import parse_options
from groupkeeper.pipeline.storage.lake import OPEN
from groupkeeper.pipeline.tables import (
    COMMITS,
    DECODED,
    EDGES,
    GROUP_EVENTS,
    GROUP_RECORDS,
    LAG,
    OFFSETS_AS_OF,
    RATES,
    REWINDS,
    SCAN_TIME,
    TABLES,
    TOPICS,
    Table,
)
from groupkeeper.pipeline.tables.state import (
    CARRIED,
    GROUP_FACTS,
    LAST_COMMITS,
    LAST_RECORDS,
    MOVES,
    PACES,
    RECENT_REWINDS,
)

TESTS = Path(__file__).resolve().parents[3]
GUIDE = TESTS.parent / "docs" / "pipeline.md"
NO_STEPS = {COMMITS.name, GROUP_RECORDS.name, OFFSETS_AS_OF.name, SCAN_TIME.name}
"""What the reading of the log, and commands of their own, write."""
QUESTIONS = TESTS.parent / "docs" / "questions.md"
PLACES = 'each table has a line `CREATE VIEW` and its name in a line `tables += "…"`'
OPTIONS = parse_options({"kafka.bootstrap.servers": "none:1", "rows": "decoded"})
OF_HISTORY = {
    EDGES, GROUP_EVENTS, GROUP_FACTS, LAST_COMMITS, LAST_RECORDS, MOVES, PACES, RATES, RECENT_REWINDS, REWINDS
}  # fmt: skip
"""Tables without whose rows a rebuild begins, as history makes the same rows again."""
OF_REFRESHES = {"last_records", "owners_of_groups", "readers", "transactions", "waiting"}
"""Functions that only tests of whole refreshes call."""
MADE = [step for step in STEPS if step.is_published and step.table not in CARRIED]


def test_each_table_is_made_by_one_step() -> None:
    assert sorted(step.table.name for step in MADE) == sorted({table.name for table in TABLES} - NO_STEPS), (
        "a published table is in TABLES of pipeline/tables and in STEPS; another step has `is_published=False`, or its "
        "table is in CARRIED of tables/state.py if the next refresh reads it"
    )


def test_the_function_of_a_step_has_tests_of_its_own() -> None:
    """The corpus has no queries of Spark, for example."""
    files = [path for part in ("unit/pipeline", "spark") for path in (TESTS / part).rglob("*.py")]
    text = "\n".join(path.read_text() for path in files if path != Path(__file__))
    functions = {step.make for step in STEPS if step.make.__module__ != Step.__module__}
    untested = {each.__name__ for each in functions if not re.search(
        rf"^from {re.escape(each.__module__)} import (\([^)]*|.*)\b{each.__name__}\b", text, re.M)}  # fmt: skip
    assert untested == OF_REFRESHES, (
        "call it in a test of tests/unit/pipeline: for a row, no row, null, and a query of Spark if such rows come"
    )


def test_what_the_next_refresh_reads_is_kept() -> None:
    read = {read.table.name for step in STEPS for read in step.reads if read.how in ("then", "before")}
    assert read - {table.name for table in (*CARRIED, *TABLES)} == set(), (
        "else it is empty at each refresh: put it in CARRIED of tables/state.py"
    )


def test_state_is_below_the_folder_of_state() -> None:
    folders = {
        step.table.name: "_groupkeeper/carried_" if step.table in CARRIED else "_groupkeeper/"
        for step in STEPS
        if step.table not in TABLES
    }
    assert [name for name, folder in folders.items() if not name.startswith(folder)] == [], (
        f"names of tables of tables/state.py begin with {folders[LAST_COMMITS.name]} (in CARRIED) or _groupkeeper/: "
        "else users find the folder among their tables"
    )


def test_the_rows_of_each_step_are_recorded() -> None:
    recorded = {path.stem: path.read_text() for path in FOLDER.glob("*.txt")}
    opened = {f"{step.table.name}.open" for step in MADE if step.adds}
    known = {step.table.name for step in MADE} | opened | {table.name for table in (DECODED, COMMITS, GROUP_RECORDS)}
    assert recorded.keys() == known, "run: python -m tests.spark.corpus.recorded"
    unread = {name for name, text in recorded.items() if " {" not in text} - DIGESTED
    assert unread == {"group_events.open", "lag_history.open"}, (
        "only digests, or nothing: give the log of `live`, whose rows are recorded as text, rows for these "
        "(tests/spark/corpus/fleet.py), and record them"
    )


def test_a_table_that_goes_on_from_its_earlier_rows_is_carried() -> None:
    adds = {step.table for step in STEPS if step.adds}
    read = {read.table for job in Job if job is not Job.ASKED for read in inputs_of(job) if read.how == "then"}
    others = {table.name for table in read & {*TABLES} - adds if not table.is_carried}
    assert others == {LAG.name, TOPICS.name}, (
        "one that continues its own rows has is_carried=True, or a rebuild counts twice; read another by `before`"
    )


def test_a_rebuild_begins_without_rows_that_history_makes_again() -> None:
    read = {read.table for step in STEPS for read in step.reads if read.how == "then"}
    dropped = {step.table for step in STEPS if step.adds and not step.table.is_measured}
    dropped |= {table for table in read if table in CARRIED or table.is_carried}
    assert {table.name for table in dropped} == {table.name for table in OF_HISTORY}, (
        "a rebuild, as the run after SCHEMA rose, begins without these rows. Where history makes them again, the table "
        "is in OF_HISTORY here; where not (measurements, since when), read it by `before`, or, if it grows, give it "
        "is_measured=True"
    )


def test_a_table_that_grows_has_days_and_is_in_the_guide() -> None:
    grow = {step.table.name for step in STEPS if step.adds}
    with_days = {table.name for table in TABLES if table.day_of in table.names}
    assert with_days == grow | {COMMITS.name, GROUP_RECORDS.name}, (
        "a table that grows has `adds=True` in STEPS and `day_of` in its schema, which --keep-rows needs"
    )
    told = re.search(r"^\*\*What a run leaves.*?^(.*?) get new rows", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert told is not None
    assert {*re.findall(r"`(\w+)`", told[1])} == grow, f"{GUIDE.name} names the tables that get new rows"


def test_steps_of_a_job_stand_together() -> None:
    jobs = [job for job, _ in itertools.groupby(step.job for step in STEPS) if job is not Job.ASKED]
    assert len(jobs) == len({*jobs}), "each job has its steps one after another, but for those that ask clusters"


class Empty:
    """The tables that a step can read, without rows."""

    failed = ()

    def now(self, table: Table) -> pa.Table:
        return table.arrow.empty_table()

    new = then = before = now


@pytest.mark.parametrize(
    "step", [step for step in STEPS if step.job is not Job.ASKED], ids=lambda step: step.table.name
)
def test_a_step_makes_its_table_of_earlier_ones(step: Step) -> None:
    earlier = {each.table for each in STEPS[: STEPS.index(step)]}
    assert [read.table.name for read in step.reads if read.how == "now" and read.table not in earlier] == [], (
        "a step stands behind those whose rows it reads (`now`)"
    )
    made = rows_of(step.made(Empty(), RefreshContext(Clusters(OPTIONS, {}, {}), {})))
    assert (OPEN in made.column_names) == step.adds, (
        f"`adds=True`, and the column OPEN ({OPEN}), go together: true in rows that the next refresh replaces"
    )
    is_whole = step.is_published and not step.adds
    reads_new = any(read.how == "new" for read in step.reads)
    assert not (is_whole and reads_new) or {then(step.table), before(step.table)} & {*step.reads}, (
        "a table made of new rows grows (`adds=True`), or reads its earlier rows (`then`)"
    )


def test_only_rows_of_one_group_are_made_by_shares_of_the_groups() -> None:
    others = [
        step.table.name for step in MADE if step.job in (Job.OFFSETS, Job.LAG) and "group_id" not in step.table.names
    ]
    assert others == [], (
        "rows of one group have its name in `group_id`; others are made in Job.CLUSTERS, of parts that a step here "
        "counts, with `is_published=False`"
    )


def test_docs_open_each_table_in_other_engines() -> None:
    text = QUESTIONS.read_text()
    in_spark = " ".join(re.findall(r'^tables \+?= "(.*)"', text, re.M)).split()
    of_history = {COMMITS.name, GROUP_RECORDS.name}
    assert sorted(re.findall(r"^CREATE VIEW (\w+) AS", text, re.M)) == sorted(in_spark), f"{QUESTIONS.name}: {PLACES}"
    assert sorted(in_spark) == sorted({step.table.name for step in MADE} | of_history), f"{QUESTIONS.name}: {PLACES}"
