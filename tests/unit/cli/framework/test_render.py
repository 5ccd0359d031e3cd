"""Reports as text: tables for people, JSON and CSV for programs, page by page."""

import csv
import io
import json

import pytest

from groupkeeper.cli.framework.render import CsvWriter, JsonWriter, TableWriter, Writer, problem_text, width
from groupkeeper.cli.framework.reports import Column, Page, Problem, Row, Schema, problem_of
from groupkeeper.client.errors import BrokersNotFound, SaslMissing
from groupkeeper.operations.problems import MissingAcl

SHAPE = Schema(
    "things", "rows", [Column("group", ""), Column("lag", ""), Column("parts", ""), Column("host", "", False)]
)


def row(group: str | None, lag: int | None, *places: tuple[str, int]) -> Row:
    return {"group": group, "lag": lag, "parts": [{"topic": t, "partition": p} for t, p in places], "host": "h"}


def written(writer: Writer, *pages: Page) -> str:
    return writer.begin() + "".join(map(writer.page, pages)) + writer.end()


PAGES = (
    Page([row("a", 5, ("t", 0), ("t", 1), ("u", 2)), row("longer", None)]),
    Page((), [Problem("BAD", "no", "g", acl=MissingAcl("DESCRIBE", "GROUP", "g"))], ["note"], {"executed": True}),
    Page([row("東京", 12345)]),
)


def test_tables_are_aligned() -> None:
    writer = TableWriter(SHAPE)
    assert written(writer, *PAGES) == ("GROUP   LAG  PARTS\na         5  t:0,1;u:2\nlonger    -  -\n東京    12345  -\n")


def test_hidden_columns_can_be_shown() -> None:
    assert "HOST" in written(TableWriter(SHAPE, with_columns=["host"]), *PAGES).splitlines()[0]


def test_a_table_without_rows_is_nothing() -> None:
    assert written(TableWriter(SHAPE), Page(), Page()) == ""


def test_what_would_break_a_table_is_escaped() -> None:
    text = written(TableWriter(SHAPE), Page([row("a\nb\x1b[31m\u202e\udc80", 1)]))
    assert "a\\nb\\x1b[31m\\u202e\\udc80" in text
    assert text.count("\n") == 2


def test_colours_do_not_disturb_the_columns() -> None:
    schema = Schema("s", "rows", [Column("state", ""), Column("group", "")])
    text = written(TableWriter(schema, has_colour=True), Page([{"state": "Dead", "group": "g"}]))
    assert text == "\x1b[1mSTATE\x1b[0m  \x1b[1mGROUP\x1b[0m\n\x1b[31mDead\x1b[0m   g\n"


def test_one_long_text_does_not_widen_every_row() -> None:
    lines = written(TableWriter(SHAPE), Page([row("x" * 300, 1), row("a", 2)])).splitlines()
    assert len(lines[2]) < 80


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", None])
def test_json_stays_json_where_letters_are_lacking(encoding: str | None) -> None:
    page = Page([row("é東🙂", 1), row("\udc80", 1)])
    text = written(JsonWriter(SHAPE, encoding=encoding), page)
    text.encode(encoding or "utf-8")
    assert [each["group"] for each in json.loads(text)["rows"]] == ["é東🙂", "\udc80"]


def test_csv_has_the_columns_of_json() -> None:
    schema = Schema("s", "rows", [*SHAPE.columns, Column("yes", "")])
    assert written(CsvWriter(SHAPE), Page([row("a\rb", 1)])).endswith('\n"a\rb",1,,h\n')
    page = Page([{**row('a,"b"\nc', None, ("t", 0), ("u", 1)), "yes": True}, {**row("", 0), "yes": False}])
    read = list(csv.DictReader(io.StringIO(written(CsvWriter(schema), page))))
    assert read == [
        {"group": 'a,"b"\nc', "lag": "", "parts": "t:0;u:1", "host": "h", "yes": "true"},
        {"group": "", "lag": "0", "parts": "", "host": "h", "yes": "false"},
    ]
    assert written(CsvWriter(schema)) == "group,lag,parts,host,yes\n"


@pytest.mark.parametrize(("text", "cells"), [("abc", 3), ("東京", 4), ("e\u0301", 1), ("🙂", 2), ("", 0)])
def test_width_is_in_cells(text: str, cells: int) -> None:
    assert width(text) == cells


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (Problem("BAD", "no"), "error: no (BAD)\n"),
        (Problem("BAD", "Group g not found.", "g"), "error: Group g not found (BAD)\n"),
        (Problem("BAD", "there is no group g (why)", "g"), "error: there is no group g (why) (BAD)\n"),
        (Problem("BAD", "Group gg is large.", "g"), "error: g: Group gg is large (BAD)\n"),
        (
            Problem("BAD", "Topic authorization failed.", topic="t", acl=MissingAcl("READ", "TOPIC", "t")),
            "error: t: Topic authorization failed; missing ACL: READ on topic t (BAD)\n",
        ),
        (Problem("BAD", "no\nmore", "", "t", 3), "error: '' t-3: no\\nmore (BAD)\n"),
        (Problem("BAD", "no", broker=7), "error: broker 7: no (BAD)\n"),
        (
            Problem("BAD", "no", "g", acl=MissingAcl("READ", "TOPIC", None)),
            "error: g: no; missing ACL: READ on topic (one of the group's topics) (BAD)\n",
        ),
        (
            Problem("BAD", "no", acl=MissingAcl("DESCRIBE", "CLUSTER", "c")),
            "error: no; missing ACL: DESCRIBE on the cluster (BAD)\n",
        ),
    ],
)
def test_a_problem_is_one_line(problem: Problem, line: str) -> None:
    assert problem_text(problem) == line


# That the brokers could not be found out is no help: why is.
def test_the_cause_is_the_problem() -> None:
    failure = BrokersNotFound("Failed to find brokers to send ListGroups: h:1 requires SASL: set it")
    failure.__cause__ = SaslMissing("h:1 requires SASL: set it")
    assert problem_of(failure) == Problem("SASL_MISSING", "h:1 requires SASL: set it")
    assert problem_of(BrokersNotFound("none")).error == "BROKERS_NOT_FOUND"


WIDE = Schema(
    "wide", "rows",
    [Column("group", ""), Column("member", "", goes=3), Column("host", "", goes=2), Column("note", "", goes=1),
     Column("assignment", "")],
)  # fmt: skip


def wide_row(note: str | None = "a" * 30, partitions: int = 3) -> Row:
    places: list[dict[str, str | int]] = [
        {"topic": "a-topic-with-a-long-name", "partition": number} for number in range(partitions)
    ]
    return {"group": "g", "member": "m" * 50, "host": "h" * 20, "note": note, "assignment": places}


def titles(writer: TableWriter, *rows: Row) -> list[str]:
    return written(writer, Page(rows)).splitlines()[0].split()


def test_a_table_that_would_be_too_wide_leaves_columns_out() -> None:
    assert titles(TableWriter(WIDE), wide_row()) == ["GROUP", "HOST", "NOTE", "ASSIGNMENT"]
    # What has no value goes first.
    assert titles(TableWriter(WIDE), wide_row(None)) == ["GROUP", "HOST", "ASSIGNMENT"]
    assert titles(TableWriter(WIDE, limit=70), wide_row()) == ["GROUP", "NOTE", "ASSIGNMENT"]
    everything = ["GROUP", "MEMBER", "HOST", "NOTE", "ASSIGNMENT"]
    assert titles(TableWriter(WIDE, limit=None), wide_row()) == everything
    assert titles(TableWriter(WIDE, limit=200), wide_row()) == everything
    # What was asked for stays.
    assert "MEMBER" in titles(TableWriter(WIDE, with_columns=["member"]), wide_row())


def test_long_lists_of_partitions_are_cut_in_the_last_column() -> None:
    lines = written(TableWriter(WIDE), Page([wide_row(None, 60)])).splitlines()
    assert max(map(len, lines)) == 100
    assert lines[1].endswith("…")
    assert "…" not in written(TableWriter(WIDE, limit=None), Page([wide_row(None, 60)]))


def test_a_sentence_in_the_last_column_is_cut_rather_than_left_out() -> None:
    schema = Schema("s", "rows", [Column("group", ""), Column("skipped", "", goes=1), Column("why", "", goes=2)])
    row: Row = {"group": "g" * 20, "skipped": None, "why": "the topic does not exist, and nothing was committed"}
    writer = TableWriter(schema, limit=60)
    lines = written(writer, Page([row])).splitlines()
    assert lines[0].split() == ["GROUP", "WHY"]
    assert (lines[1].endswith("the topic does not exist, and nothing…"), writer.has_cut) == (True, True)
    assert titles(TableWriter(schema, limit=40), row) == ["GROUP"]
    cut = written(TableWriter(schema, limit=40, cuts_names=True), Page([row])).splitlines()
    assert cut[1] == "ggggggggg…gggggggg  the topic does not …"
    assert titles(TableWriter(schema, limit=90), row) == ["GROUP", "SKIPPED", "WHY"]


@pytest.mark.parametrize(("encoding", "name"), [("ascii", r"caf\xe9 \u6771\u4eac"), ("latin-1", r"café \u6771\u4eac")])
def test_columns_stay_columns_where_letters_are_lacking(encoding: str, name: str) -> None:
    text = written(TableWriter(SHAPE, encoding=encoding), Page([row("café 東京", 1), row("b", 2, *[("t", 1)] * 60)]))
    assert text.encode(encoding).decode(encoding) == text
    head, first, second = text.splitlines()
    assert first.startswith(name)
    assert second.endswith("~")
    assert first.index("  1") == second.index("  2") == head.index("LAG")
