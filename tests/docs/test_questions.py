"""docs/questions.md: each question, as printed, gives in DuckDB the answer that was worked out by hand."""

import re
from collections.abc import Iterator

import duckdb
import pytest
from tests.docs.operators_fleet import ANSWERS, written
from tests.docs.questions import GUIDE, Question, check_answer, preparation, questions

from groupkeeper.pipeline.tables import TABLES

QUESTIONS = questions()
NOT_ASKED = {"group_records", "current_offsets", "log_offsets", "offsets_as_of", "scan_time"}
"""Tables that others are made of, or that a command writes."""
SAID_ONCE = {"cluster", "group_id", "topic", "partition", "owner"}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    tables = written(tmp_path_factory.mktemp("fleet") / "tables")
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute(preparation("sql").replace("'tables/", f"'{tables}/"))
        yield database


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.title)
def test_answer(question: Question, database: duckdb.DuckDBPyConnection) -> None:
    answer = database.sql(question.sql).to_arrow_table()
    check_answer(question.title, answer)
    explained = set(re.findall(r"`(\w+)`", question.meanings)) | SAID_ONCE
    assert set(answer.column_names) <= explained, question.title


def test_each_question_says_when_to_ask_it_and_has_an_answer() -> None:
    assert sorted(question.title for question in QUESTIONS) == sorted(ANSWERS)
    assert [question.title for question in QUESTIONS if not re.fullmatch(r"Ask this [^.]*\.", question.when)] == []


def test_each_table_is_asked() -> None:
    asked = set(re.findall(r"\w+", " ".join(question.sql for question in QUESTIONS)))
    assert {table.name for table in TABLES} - asked == NOT_ASKED, "docs/questions.md has no question for a table"


def test_both_engines_have_the_same_tables() -> None:
    in_duckdb = re.findall(r"CREATE VIEW (\w+) AS FROM 'tables/(\w+)/", preparation("sql"))
    assert all(view == table for view, table in in_duckdb)
    in_spark = " ".join(re.findall(r'^tables .*"(.*)"$', preparation("python"), re.MULTILINE))
    assert [view for view, _ in in_duckdb] == in_spark.split(), "the tables of both, in one order"
    assert all(f"`{name}`" in GUIDE.partition("\n## Can")[0] for name in SAID_ONCE)
